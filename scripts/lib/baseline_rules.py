# SPDX-License-Identifier: GPL-2.0
"""Rules that remove the stock implementation from a kernel source.

A rules file is a list of removals.  `== FILE` opens a file; every line under it
is `OP [xN] ARGUMENT` and must match exactly N times (default: once).  The
argument is a name or a Python regular expression (RE).  `==? FILE` opens a file
that not every base has: if the file is missing, its rules are left out.

  rm              the open file or directory itself
  func   NAME     C function: definition or prototype, with the comment above
  stmt   RE       C statement or declaration that starts where RE matches, up to
                  its `;` or closing brace, with the comment above
  ifdef  NAME     `#if.. NAME` up to and with its #endif (#else branch included)
  config NAME     Kconfig entry
  line   RE       the lines in which RE occurs
  note   RE       the comment in which RE occurs
  cut    RE       only the text that RE matches
  blank  RE       like cut, but with spaces instead (for drawings in comments)
  dedent RE       replace `RE {...}` by the body, one tab to the left
  sub    RE => TEXT        (\\n and \\t in TEXT are a newline and a tab)
  in     NAME     the lines below look only into this function's body

`== gone GLOB...` opens a check: after the removal, no line of these files may
match a `match RE`, unless an `except RE` matches "FILE:LINE".
"""
import glob
import os
import re

import removal

RULES_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "baseline.d")
OPERATIONS = ('rm', 'func', 'stmt', 'ifdef', 'config', 'line', 'note', 'cut',
              'blank', 'dedent', 'sub', 'match', 'except')


class Rule:
    def __init__(self, where, target, optional, scope, operation, count, argument):
        self.where, self.target, self.optional, self.scope = where, target, optional, scope
        self.operation, self.count, self.argument = operation, count, argument

    def __str__(self):
        return f"{self.operation} {self.argument}".rstrip()


def read_rules(path):
    """Return the rules in a file; raise ValueError with the first line that is no rule."""
    rules, target, optional, scope = [], None, False, None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip()
            where = f"{os.path.basename(path)}:{number}"
            if not line.strip() or line.startswith("#"):
                continue
            opened = re.fullmatch(r"==(\??) +(.+)", line)
            if opened:
                target, optional, scope = opened[2], bool(opened[1]), None
                continue
            parts = re.fullmatch(r"(\w+)(?: +x(\d+))?(?: +(.*))?", line)
            if parts and parts[1] == "in" and target:
                scope = parts[3]
                continue
            if not parts or parts[1] not in OPERATIONS or not target:
                raise ValueError(f"{where}: not a rule: {line}")
            rules.append(Rule(where, target, optional, scope, parts[1], int(parts[2] or 1), parts[3] or ""))
    return rules


def topics():
    """Return the names of the topics that have rules."""
    return sorted(name[:-6] for name in os.listdir(RULES_DIR) if name.endswith(".rules"))


def rules_of(topic):
    return read_rules(os.path.join(RULES_DIR, topic + ".rules"))


class Plan:
    """The effects of a set of rules on a kernel source: changed texts, removed paths, and problems."""

    def __init__(self, rules, read, exists):
        """Apply the rules; read(path) returns a file's text or raises OSError, exists(path) whether there is a file."""
        self.edits, self.removed, self.problems = {}, [], []
        self.rules = [rule for rule in rules if not rule.optional or exists(rule.target)]
        for rule in self.rules:
            if rule.target.startswith("gone "):
                continue
            try:
                self.carry_out(rule, read, exists)
            except (removal.Drift, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                self.problems.append(f"{rule.where}: {rule.target}: {rule}: {reason}")

    def carry_out(self, rule, read, exists):
        if rule.operation == "rm":
            if not exists(rule.target):
                raise removal.Drift("no such file")
            self.removed.append(rule.target)
            return
        if rule.target not in self.edits:
            self.edits[rule.target] = read(rule.target)
        self.edits[rule.target] = removal.apply(rule, self.edits[rule.target])

    def nothing_there(self):
        """Return whether no rule matched, as in a source whose stock code was removed before."""
        return len(self.problems) >= sum(not rule.target.startswith("gone ") for rule in self.rules)

    def is_removed(self, path):
        return any(path == gone or path.startswith(gone + "/") for gone in self.removed)

    def check_gone(self, tree):
        """Apply the `gone` checks to the tree as it will be after the rules; add left-over lines to the problems."""
        checks = {}
        for rule in self.rules:
            if rule.target.startswith("gone "):
                checks.setdefault(rule.target, []).append(rule)
        for target, rules in checks.items():
            paths = set()
            for pattern in target.split()[1:]:
                found = glob.glob(os.path.join(glob.escape(tree), pattern), recursive=True)
                if not found:
                    self.problems.append(f"{rules[0].where}: {pattern}: no such file")
                paths.update(os.path.relpath(path, tree) for path in found)
            excuse = re.compile("|".join(f"(?:{r.argument})" for r in rules if r.operation == "except") or r"(?!)")
            for path in sorted(paths):
                if os.path.isfile(os.path.join(tree, path)) and not self.is_removed(path):
                    self.check_file(tree, path, [r for r in rules if r.operation == "match"], excuse)

    def check_file(self, tree, path, rules, excuse):
        text = self.edits.get(path)
        if text is None:
            with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as source:
                text = source.read()
        for rule in rules:
            for match in re.finditer(rule.argument, text, re.M):
                start = text.rfind("\n", 0, match.start()) + 1
                line = text[start:(text + "\n").index("\n", match.end())]
                if not excuse.search(f"{path}:{line}"):
                    self.problems.append(f"{rule.where}: {path}: left over: {line.strip()}")
