# SPDX-License-Identifier: GPL-2.0
"""Apply one removal rule to the text of one file.

The operations of the rules are described in baseline_rules.py.
"""
import re

ON_CODE = ('func', 'stmt', 'dedent')        # operations that ignore brackets and semicolons in comments


class Drift(Exception):
    """A rule does not match the source as often as the rule says."""


def blank_out(text):
    """Return text with comments, strings and character constants replaced by as many spaces."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                  lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def after_bracket(code, opening):
    """Return the index after the bracket that closes the bracket at code[opening]."""
    left = code[opening]
    right, depth = {"(": ")", "{": "}", "[": "]"}[left], 0
    for i in range(opening, len(code)):
        depth += (code[i] == left) - (code[i] == right)
        if not depth:
            return i + 1
    raise Drift(f"unbalanced {left}")


def after_statement(code, i):
    """Return the index after the statement, declaration or definition that starts at code[i]."""
    while code[i] != ";":
        if code[i] in "([":
            i = after_bracket(code, i)
        elif code[i] == "{":
            i = after_bracket(code, i)
            semicolon = re.compile(r"\s*;").match(code, i)
            if semicolon:
                return semicolon.end()
            if not re.compile(r"\s*else\b").match(code, i):
                return i
        else:
            i += 1
    return i + 1


def with_comment_above(text, i):
    """Return where the comment above the line of text[i] starts, or else where the line starts.
    Return i if other text precedes text[i] in its line."""
    line = text.rfind("\n", 0, i) + 1
    if text[line:i].strip():
        return i
    comment = re.search(r"(?:^[ \t]*/\*(?:(?!\*/).)*?\*/[ \t]*\n)\Z", text[:line], re.S | re.M)
    return comment.start() if comment else line


def after_endif(text, i):
    """Return the index after the #endif of the conditional whose first line ends at text[i]."""
    depth = 1
    while depth:
        directive = re.compile(r"^#\s*(if|endif)\w*\b.*\n", re.M).search(text, i)
        if not directive:
            raise Drift("no #endif")
        depth += 1 if directive[1] == "if" else -1
        i = directive.end()
    return i


def find(operation, argument, text):
    """Return the (start, end) of each piece of text that an operation of a rule is for."""
    code = blank_out(text) if operation in ON_CODE else text
    if operation == "func":
        # the return type can be on the line before the function's name
        heads = re.finditer(r"^(?:[A-Za-z_][\w \t*]*\n)?(?:[A-Za-z_][\w \t*]*[ \t*])?%s\(" % argument,
                            code, re.M)
        return [(with_comment_above(text, m.start()), after_statement(code, m.end() - 1)) for m in heads]
    if operation == "stmt":
        found = []
        for m in re.finditer(argument, text, re.M):
            if code[m.start():m.end()].strip():
                first = m.end() - len(m.group().lstrip())
                found.append((with_comment_above(text, first), after_statement(code, first)))
        return found
    if operation == "ifdef":
        return [(m.start(), after_endif(text, m.end()))
                for m in re.finditer(r"^#\s*if.*\b%s\b.*\n" % argument, text, re.M)]
    pattern, flags = {
        "config": (r"^config %s\n(?:[ \t].*\n|\n)*" % argument, re.M),
        "line": (r"^.*(?:%s).*\n" % argument, re.M),
        "note": (r"[ \t]*/\*(?:(?!\*/).)*?(?:%s)(?:(?!\*/).)*?\*/\n?" % argument, re.S),
    }.get(operation, (argument, re.M))
    return [m.span() for m in re.finditer(pattern, text, flags)]


def drop(text, start, end):
    """Return text without text[start:end], and without a blank line or blanks that this would leave."""
    if start and text[start - 1] != "\n":
        if text[end:end + 1] == "\n":
            return text[:start].rstrip(" \t") + text[end:]
        return text[:start] + text[end:]
    if text[end - 1] != "\n" and text[end:end + 1] == "\n":
        end += 1
    while text[end:end + 1] == "\n" and re.search(r"(^|\n\n|[{:]\n)\Z", text[:start]):
        end += 1
    if text[:start].endswith("\n\n") and re.compile(r"[ \t]*\}").match(text, end):
        start -= 1
    return text[:start] + text[end:]


def change(operation, text, start, end, replacement):
    if operation == "sub":
        return text[:start] + replacement + text[end:]
    if operation == "cut":
        return text[:start] + text[end:]
    if operation == "blank":
        if text[end:end + 1] == "\n":
            return text[:start].rstrip(" ") + text[end:]
        return text[:start] + " " * (end - start) + text[end:]
    if operation == "dedent":
        brace = text.index("{", end)
        after = after_bracket(blank_out(text), brace)
        body = re.sub(r"^\t", "", text[brace + 1:after - 1].strip("\n"), flags=re.M)
        return text[:text.rfind("\n", 0, start) + 1] + body.rstrip("\t") + text[after + 1:]
    return drop(text, start, end)


def apply(rule, text):
    """Return text after one rule was applied, in the rule's scope; raise Drift if the rule does not match."""
    if rule.scope:
        # take only definitions of several lines: a header can have a stub of the same name in one line
        bodies = [(a, b) for a, b in find("func", rule.scope, text) if text[:b].endswith("\n}")]
        if len(bodies) != 1:
            raise Drift(f"{len(bodies)} bodies of {rule.scope}, expected 1")
        start, end = bodies[0]
        return text[:start] + apply_once(rule, text[start:end]) + text[end:]
    return apply_once(rule, text)


def apply_once(rule, text):
    """Return text after one rule was applied; raise Drift if the rule does not match as often as it says."""
    pattern, replacement = rule.argument, ""
    if rule.operation == "sub":
        pattern, replacement = rule.argument.split(" => ")
        replacement = replacement.replace(r"\n", "\n").replace(r"\t", "\t")
    try:
        spans = find(rule.operation, pattern, text)
    except IndexError:
        raise Drift("statement without an end") from None
    if len(spans) != rule.count:
        raise Drift(f"{len(spans)} matches, expected {rule.count}")
    for start, end in reversed(spans):
        text = change(rule.operation, text, start, end, replacement)
    return text
