# SPDX-License-Identifier: GPL-2.0
"""For scripts/report: make the report as one HTML page, without scripts and without other files."""
import re

from report_chart import charts_of, escape, is_number

MARKS = {"passed": "✓ passed", "failed": "✗ failed", "skipped": "– skipped", "not run": "· not run",
         "pass": "✓ pass", "FAIL": "✗ FAIL", "skip": "– skip", "-": "·"}
CLASSES = {"passed": "good", "pass": "good", "failed": "bad", "FAIL": "bad"}
STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fff; --line: #c4c4c4; --soft: #f3f4f6; --good: #176c2e;
  --bad: #b3161b; --ours: #1f5fa8; --stock: #8a8a8a; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --back: #16181b; --line: #4a4d52; --soft: #23262b; --good: #6cd08a; --bad: #ff8a8a;
    --ours: #6aa9f2; --stock: #9b9b9b; }
}
body { font: 16px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 0 auto;
  max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 1.6rem; }
nav a { margin-right: 1.2rem; } a { color: var(--ours); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left; vertical-align: top; }
thead th { background: var(--soft); } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .mark { white-space: nowrap; }
.sums { display: flex; flex-wrap: wrap; gap: 1rem; padding: 0; list-style: none; }
.sums li { background: var(--soft); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem 1rem; }
.sums b { font-size: 1.4rem; display: block; }
summary { cursor: pointer; white-space: nowrap; } details ul { margin: .3rem 0; padding-left: 1.2rem; }
code { font-size: .92em; overflow-wrap: anywhere; } figure { margin: 1rem 0; } figcaption { font-weight: 600; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
.ours { fill: var(--ours); } .stock { fill: var(--stock); }
@media print { nav { display: none; } body { font-size: 11px; max-width: none; } tr, figure { break-inside: avoid; }
  a { color: inherit; } }
"""


def plain(text):
    """Convert a text of BEHAVIOURS.md to HTML, with code in backquotes and no other Markdown."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def mark(verdict):
    return f'<span class="mark {CLASSES.get(verdict, "")}">{MARKS.get(verdict, escape(verdict))}</span>'


def table(caption, columns, rows):
    """Make a table; rows are lists of HTML, and columns of numbers are aligned to the right."""
    right = [bool(rows) and all(is_number(re.sub(r"<[^>]*>", "", row[i])) for row in rows if i < len(row))
             for i in range(len(columns))]

    def cell(kind, i, content, more=""):
        return f'<{kind}{more}{" class=number" if i < len(right) and right[i] else ""}>{content}</{kind}>'

    head = "".join(cell("th", i, escape(name), ' scope="col"') for i, name in enumerate(columns))
    body = "\n".join("<tr>" + "".join(cell("th", i, c, ' scope="row"') if i == 0 else cell("td", i, c)
                                     for i, c in enumerate(row)) + "</tr>" for row in rows)
    return (f'<div class="wide"><table><caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>\n")


def results_list(results):
    """Return the results of a row as a list that the reader can unfold."""
    if not results:
        return ""
    passed = sum(result["ours"] == "pass" for result in results)
    lines = "".join(
        f'<li><code>{escape(r["test"])}</code>{" on " + escape(r["machine"]) if r["machine"] else ""}: '
        f'{mark(r["ours"])}{", stock " + mark(r["stock"]) if r["stock"] != "-" else ""}</li>' for r in results)
    return f"<details><summary>{passed} of {len(results)} passed</summary><ul>{lines}</ul></details>"


def rows_table(title, rows):
    """Return the rows of one section of BEHAVIOURS.md as a table."""
    cells = []
    for row in rows:
        stock = escape(row["stock"]) or "–"
        if row["stock_run"]:
            stock += f'<br><span class="mark">{row["stock_failed"]} of {row["stock_run"]} tests fail</span>'
        cells.append([f'<span id="{row["row"]}">{row["row"]}</span>', plain(row["behaviour"]), stock,
                      mark(row["verdict"]) + results_list(row["results"]),
                      ", ".join(f"<code>{escape(name)}</code>" for name in row["programs"])])
    return table(title, ["Row", "Behaviour", "Stock", "Ours", "Tests"], cells)


def tests_table(tests):
    cells = []
    for test in tests:
        words = {"FAIL": "failed", "skip": "skipped"}
        notes = [f'{escape(r["name"])}: {escape(r["reason"] or words[r["verdict"]])}'
                 for r in test["results"] if r["verdict"] != "pass"]
        more = f"<details><summary>{len(notes)}</summary><ul><li>{'</li><li>'.join(notes)}</li></ul></details>"
        cells.append([f'<code>{escape(test["name"])}</code>', test["date"], str(test["passed"]), str(test["failed"]),
                      str(test["skipped"]), more if notes else "none"])
    return table("Each test's last run (UTC)", ["Test", "When", "Passed", "Failed", "Skipped", "Not passed"], cells)


def page(report):
    rows, tests = report["rows"], report["tests"]
    sums = [(sum(row["verdict"] == verdict for row in rows), f"rows {verdict}")
            for verdict in ("passed", "failed", "skipped", "not run")]
    sums += [(sum(test[what] for test in tests), f"tests {what}") for what in ("passed", "failed", "skipped")]
    body = [f'<h1>Event-based branches and branch sampling: results</h1>\n<p>Made {report["made"]} UTC of commit '
            f'<code>{escape(report["commit"])}</code>, on emulated machines. Nothing here was measured on '
            "hardware.</p>",
            '<nav aria-label="Contents"><a href="#rows">Behaviours</a><a href="#figures">Figures</a>'
            '<a href="#tests">Tests</a></nav>',
            "<ul class=sums>" + "".join(f"<li><b>{count}</b> {what}</li>" for count, what in sums if count or
                                        "passed" in what or "failed" in what) + "</ul>",
            '<h2 id="rows">Behaviours</h2>\n<p>What the features have to do, what the stock kernel does instead, and '
            "how the tests ended on ours, beside stock where they ran on both.</p>"]
    for letter, title in report["sections"].items():
        body.append(rows_table(title[0].upper() + title[1:], [row for row in rows if row["row"].startswith(letter)]))
    body.append('<h2 id="figures">Figures</h2>')
    figures = [(name, tables, [c for found in tables for c in charts_of(name, found)])
               for name, tables in report["figures"].items()]
    for name, tables, charts in sorted(figures, key=lambda figure: not figure[2]):
        body.append(f"<h3>{escape(name)}</h3>")
        body += charts
        for found in tables:
            shown = table(found["title"] or name, found["columns"], [list(map(escape, row)) for row in found["rows"]])
            body.append(f"<details><summary>Table: {escape(found['title'] or name)}</summary>{shown}</details>")
    if not report["figures"]:
        body.append("<p>No test that measures has been run.</p>")
    body += ['<h2 id="tests">Tests</h2>', tests_table(tests)]
    return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>Event-based branches and branch sampling: results</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n{chr(10).join(body)}\n</main>\n</body>\n</html>\n")
