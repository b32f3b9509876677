# SPDX-License-Identifier: GPL-2.0
"""Check an HTML page: its tags, and how headless Chromium shows it."""
import html.parser
import struct
import subprocess
import zlib

# elements that have no end tag
VOID = {"meta", "rect", "br"}


class Page(html.parser.HTMLParser):
    """An HTML page: tags that do not match, links, texts, and other files that the page needs."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.wrong = []
        self.outside = []
        self.texts = []
        self.ids = set()
        self.targets = set()
        self.feed(text)
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name == "href" and value.startswith("#"):
                self.targets.add(value[1:])
            elif name in ("src", "href", "data", "action") or name.startswith("on"):
                self.outside.append(value)
        if tag in ("script", "link", "iframe", "img", "object"):
            self.outside.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def pixels(path):
    """Return the width, the height and the number of different lines of an 8-bit PNG file."""
    with open(path, "rb") as f:
        data = f.read()
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    step = 1 + width * {2: 3, 6: 4}[colour] * depth // 8
    raw = zlib.decompress(packed)
    return width, height, len({raw[i:i + step] for i in range(0, len(raw), step)})


def browse(folder, page, *options):
    """Run headless Chromium on the page; return its output, and its complaints about the page."""
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           f"--user-data-dir={folder}/profile", "--window-size=1100,1400", *options,
                           "file://" + page],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=120,
                          check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
