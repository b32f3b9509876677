# SPDX-License-Identifier: GPL-2.0
"""For scripts/report: read the results of the last tests, by the rows of BEHAVIOURS.md."""
import datetime
import os
import re

import ktap

# A row of BEHAVIOURS.md: the number, the behaviour, the stock kernel, the tests
ROW = re.compile(r"^\| ([EBT]\d+) \|(.*)\|([^|]*)\|([^|]*)\|$", re.M)
HEADING = re.compile(r"^## ([EBT]): (.*)$", re.M)
# The number of a row in the name of a test, as scripts/gates/behaviours finds it
ROW_OF = re.compile(r"(?<![a-z0-9_])([ebt]\d{1,2})_(?=[a-z0-9])")
COMPARISON = ["row", "test", "stock", "ours"]
VERDICTS = {"pass", "FAIL", "skip", "-"}


def row_of(name):
    found = ROW_OF.search(name)
    return found[1].upper() if found else None


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read_tables(lines):
    """Return the tables that a test has printed, each with title, columns and rows."""
    tables = []
    title = ""
    table = None
    for line in lines:
        if not line.startswith("|"):
            if line.startswith("# "):
                title = line[2:].strip()
            # other lines can be between the rows of a table: results, and messages of a guest
            if not line or line.startswith("# "):
                table = None
        elif table is None:
            table = {"title": title, "columns": cells(line), "rows": []}
            tables.append(table)
        elif set(line) - set("|-: "):
            table["rows"].append(cells(line))
    return tables


def is_comparison(table):
    return table["columns"] == COMPARISON and all(set(row[2:]) <= VERDICTS for row in table["rows"])


def read_log(path):
    """Read the log of a test program; return its results, its tables and its date."""
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    results = [result for result in map(ktap.parse, lines) if result and not result.depth]
    tables = read_tables(lines)
    date = datetime.datetime.fromtimestamp(os.path.getmtime(path), datetime.timezone.utc)
    return {
        "name": os.path.basename(path).removesuffix(".log"),
        "date": date.strftime("%Y-%m-%d %H:%M"),
        "passed": sum(r.verdict == "pass" for r in results),
        "failed": sum(r.verdict == "FAIL" for r in results),
        "skipped": sum(r.verdict == "skip" for r in results),
        "results": [{"name": r.name, "verdict": r.verdict, "reason": r.reason} for r in results],
        "comparisons": [table for table in tables if is_comparison(table)],
        "tables": [table for table in tables if not is_comparison(table)],
    }


def results_by_row(logs):
    """Return {row: [{test, machine, log, stock, ours}]} of all logs."""
    rows = {}

    def add(name, **result):
        if row_of(name):
            rows.setdefault(row_of(name), []).append({"test": name, **result})

    for log in logs:
        compared = set()
        for table in log["comparisons"]:
            machine = table["title"].rpartition(": ")[2]
            for _, name, stock, ours in table["rows"]:
                compared.add(f"{name} ({machine})")
                add(name, machine=machine, log=log["name"], stock=stock, ours=ours)
        for result in log["results"]:
            if result["name"] not in compared:
                add(result["name"], machine="", log=log["name"], stock="-", ours=result["verdict"])
    return rows


def verdict_of(results):
    """Return the verdict on a row: failed, passed, skipped or not run."""
    ours = {result["ours"] for result in results}
    for seen, verdict in (("FAIL", "failed"), ("pass", "passed"), ("skip", "skipped")):
        if seen in ours:
            return verdict
    return "not run"


def read_rows(text, logs):
    """Return the rows of BEHAVIOURS.md, whose text is given, with the results of their tests."""
    results = results_by_row(logs)
    rows = []
    for row, behaviour, stock, programs in ROW.findall(text):
        mine = results.get(row, [])
        on_stock = [result["stock"] for result in mine if result["stock"] in ("pass", "FAIL")]
        rows.append({"row": row, "behaviour": behaviour.strip(), "stock": stock.strip().replace("**", ""),
                     "programs": re.findall(r"`([^`]+)`", programs), "verdict": verdict_of(mine),
                     "stock_failed": on_stock.count("FAIL"), "stock_run": len(on_stock), "results": mine})
    return rows


def collect(folder, text, extra=()):
    """Return all data of the report: sections, rows, tests and tables; extra is [(name, path)] of more
    files with tables."""
    logs = [read_log(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".log")]
    figures = {log["name"]: log["tables"] for log in logs if log["tables"]}
    for name, path in extra:
        if name not in figures and os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                figures[name] = read_tables(f.read().splitlines())
    rows = read_rows(text, logs)
    for log in logs:
        del log["comparisons"], log["tables"]
    return {"sections": dict(HEADING.findall(text)), "rows": rows, "tests": logs, "figures": figures}
