# SPDX-License-Identifier: GPL-2.0
"""Bar charts of what tests have measured, as inline SVG."""
import html
import re

WIDTH, LABEL, BAR_HEIGHT, GAP = 860, 290, 16, 10


def escape(text):
    return html.escape(str(text))


def is_number(text):
    return re.fullmatch(r"[-+]?\d[\d.]*( %)?|inf", text) is not None


def number(text):
    return float(text.removesuffix(" %")) if is_number(text) and text != "inf" else None


def chart(title, bars):
    """Make a bar chart; bars are (label, series or empty, value or None, text beside the bar).

    The labels and values are also text, so that the chart can be read without its
    colours and lengths.
    """
    largest = max((value for _, _, value, _ in bars if value is not None), default=0) or 1
    room = WIDTH - LABEL - 130
    y = 4
    shapes = []
    before = None
    for label, series, value, words in bars:
        if before is not None and label != before:
            y += GAP
        if label != before:
            shapes.append(f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
        before = label
        length = room * value / largest if value is not None else 0
        shapes.append(f'<rect class="{series or "ours"}" x="{LABEL}" y="{y}" width="{max(length, 1):.1f}" '
                      f'height="{BAR_HEIGHT}"/>')
        shapes.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 13}">{escape(words)}</text>')
        y += BAR_HEIGHT + 3
    said = "; ".join(f"{label} {words}" for label, _, _, words in bars)
    return (f'<figure><figcaption>{escape(title)}</figcaption>\n<svg role="img" viewBox="0 0 {WIDTH} {y + 4}" '
            f'width="{WIDTH}" height="{y + 4}" aria-label="{escape(title)}: {escape(said)}">\n'
            + "\n".join(shapes) + "\n</svg></figure>\n")


def pairs(found, label, stock, ours):
    """Return the bars for a table that has a column for each kernel."""
    columns = found["columns"]
    bars = []
    for row in found["rows"]:
        for name, column in (("stock", stock), ("ours", ours)):
            text = row[columns.index(column)]
            bars.append((label(row), name, number(text), f"{name} {text}"))
    return bars


def by_kernel(found, label, column):
    """Return the bars for a table that has a row for each kernel."""
    columns = found["columns"]
    kernel, value = columns.index("kernel"), columns.index(column)
    rows = sorted(found["rows"], key=lambda row: row[kernel] != "stock")
    labels = list(dict.fromkeys(row[columns.index(label)] for row in found["rows"]))
    return [(f"{label} {name}", row[kernel], number(row[value]),
             f"{row[kernel]} {row[value]}" if row[value] != "inf" else f"{row[kernel]}: not one such stack")
            for name in labels for row in rows if row[columns.index(label)] == name]


def charts_of(name, found):
    """Yield the charts for a table of a test; for most tests there is none."""
    columns = found["columns"]
    if any(len(row) != len(columns) for row in found["rows"]):
        return
    if name == "brs-cost" and columns[:2] == ["period", "kernel"]:
        # at short periods, the stock kernel records no full stack of a program's branches: a text replaces its bar
        for what in ("kernel instructions", "MSR accesses"):
            yield chart(f"{what} for each full stack of a program's branches", by_kernel(found, "period", what))
    elif name == "ebb-switch-cost" and columns[:2] == ["tasks", "what"]:
        for what in dict.fromkeys(row[1] for row in found["rows"]):
            part = {"columns": columns, "rows": [row for row in found["rows"] if row[1] == what]}
            yield chart(f"{what}, one switch", pairs(part, lambda row: row[0], "stock", "ours"))
    elif name == "fdo" and columns[0] == "build":
        for column in ("taken branches", "instructions"):
            i = columns.index(column)
            base = number(found["rows"][0][i])
            yield chart(f"{column}, in millions", [
                (row[0], "stock" if n == 0 else "ours", number(row[i]), f"{number(row[i]) / 1e6:.1f}" +
                 (f" ({100 * (number(row[i]) / base - 1):+.1f} %)" if n else ""))
                for n, row in enumerate(found["rows"])])
    elif name == "fdo" and columns[-1] == "edges right":
        yield chart("part of the profile that is right", [
            (f"{row[1]} samples, period {row[0]}", "ours", number(row[2]), row[2]) for row in found["rows"]])
    elif name == "brs-idle" and "held in idle" in columns:
        yield chart("interrupts held while the CPU is idle", by_kernel(found, columns[0], "held in idle"))
