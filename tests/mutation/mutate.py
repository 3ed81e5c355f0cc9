"""Mutants of the C++ of a directory tree, all in one build (mutant schemata): every point where the code is changed
becomes `on(ID) ? changed : original`, and a process chooses the changed one by its environment. The syntax is clang's;
whether a mutant compiles is the compiler's word (mutants.py drops those that do not)."""
import re
from pathlib import Path

import clang.cindex as ci
from clang.cindex import CursorKind as Kind

LAYERS = {  # layer -> files, as globs of the tree
    "units": ["src/base/units.cpp", "src/base/sweep.cpp", "src/base/traced.cpp"],
    "model": ["src/model/*.cpp"],
    "network": ["src/network/*.cpp"],
    "cost": ["src/cost/*.cpp"],
    "economics": ["src/economics/*.cpp"],
    "plan": ["src/plan/*.cpp"],
    "serve": ["src/serve/*.cpp"],
}
SWAPPED = {"+": ["-"], "-": ["+"], "*": ["/", "lhs"], "/": ["*", "lhs"], "%": ["*"], "<": ["<=", ">="], "<=": ["<", ">"],
           ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"]}
COMPOUND = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
NUMBER = re.compile(r"(\d[\d']*|\d[\d']*\.[\d']*(e[+-]?\d+)?|\d[\d']*e[+-]?\d+|\.\d+)$")
# What a mutant of it cannot change: assertions, and room made beforehand.
IDLE_CALL = re.compile(r"(check|internal_error|[\w.>\-\[\]()]*\b(reserve|shrink_to_fit))\s*\(")


class Mutant:
    def __init__(self, layer, file, start, end, line, lines, kind, text, changed, place=""):
        self.layer, self.file, self.start, self.end = layer, file, start, end
        self.line, self.lines, self.kind, self.text, self.changed = line, lines, kind, text, changed
        self.place = place  # the line that it is on

    def key(self):
        return (self.file, self.start, self.end, self.kind, self.changed)


def one_line(text):
    """On one line, so that the lines of the file stay; None with a comment in it."""
    if "//" in text or "/*" in text:
        return None
    return " ".join(text.split("\n"))


class Finder:
    """The points of one file."""

    def __init__(self, layer, name, text):
        self.layer, self.name, self.text, self.found = layer, name, text, []

    def of(self, cursor):
        return self.text[cursor.extent.start.offset:cursor.extent.end.offset]

    def add(self, cursor, kind, changed):
        start, end = cursor.extent.start, cursor.extent.end
        text = self.of(cursor)
        if one_line(text) is None or changed is None or not text:
            return
        self.found.append(Mutant(self.layer, self.name, start.offset, end.offset, start.line,
                                 (start.line, end.line), kind, text, one_line(changed),
                                 " ".join(self.text.splitlines()[start.line - 1].split())))

    def operands(self, cursor):
        """(left, operator, right) of a binary operation, whatever clang calls it."""
        children = list(cursor.get_children())
        if cursor.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
            left, right = children
        elif cursor.kind == Kind.CALL_EXPR and len(children) == 3:
            left, middle, right = sorted(children, key=lambda c: c.extent.start.offset)
            if self.of(middle) not in SWAPPED and self.of(middle) not in COMPOUND:
                return None
        else:
            return None
        between = self.text[left.extent.end.offset:right.extent.start.offset].strip()
        if between not in SWAPPED and between not in COMPOUND and between != "=":
            return None
        return left, between, right

    def binary(self, cursor):
        parts = self.operands(cursor)
        if parts is None:
            return
        left, operator, right = parts
        a, b = self.of(left), self.of(right)
        for other in SWAPPED.get(operator, []):
            self.add(cursor, f"{operator} becomes {other}", f"({a})" if other == "lhs" else f"({a} {other} {b})")

    def literal(self, cursor):
        text = self.of(cursor)
        if not NUMBER.match(text):
            return
        if cursor.kind == Kind.INTEGER_LITERAL:
            self.add(cursor, "literal", f"({text} + 1)")
        else:
            self.add(cursor, "literal", "(1.0)" if float(text.replace("'", "")) == 0 else f"(2 * {text})")

    def extremum(self, cursor):
        text = self.of(cursor)
        match = re.match(r"(std::)?(min|max)\s*\(", text)
        if match:
            other = {"min": "max", "max": "min"}[match.group(2)]
            self.add(cursor, f"{match.group(2)} becomes {other}", (match.group(1) or "") + other + text[match.end(2):])

    def condition(self, cursor):
        children = list(cursor.get_children())
        if not children or children[0].kind in (Kind.DECL_STMT, Kind.VAR_DECL):
            return
        condition = children[0]
        head = self.text[cursor.extent.start.offset:condition.extent.start.offset]
        if "constexpr" in head or ";" in head:
            return
        self.add(condition, "condition negated", f"(!({self.of(condition)}))")

    def statement(self, cursor):
        end = cursor.extent.end.offset
        if not re.match(r"\s*;", self.text[end:end + 3]) or IDLE_CALL.match(self.of(cursor)):
            return
        parts = self.operands(cursor)
        if parts and parts[1] in COMPOUND:
            left, operator, right = parts
            self.add(cursor, "statement: " + COMPOUND[operator], f"{self.of(left)} {COMPOUND[operator]} {self.of(right)}")
        elif cursor.kind in (Kind.CONTINUE_STMT, Kind.CALL_EXPR, Kind.UNEXPOSED_EXPR) or parts:
            self.add(cursor, "statement left out", "static_cast<void>(0)")

    def walk(self, cursor, parent=None):
        place = cursor.location.file
        if place is not None and place.name != self.name and cursor.kind != Kind.TRANSLATION_UNIT:
            return
        if cursor.kind in (Kind.STATIC_ASSERT, Kind.ENUM_DECL):
            return
        if cursor.kind == Kind.VAR_DECL and cursor.semantic_parent.kind in (Kind.TRANSLATION_UNIT, Kind.NAMESPACE):
            return  # made before a process knows which mutant it is
        if cursor.kind == Kind.CALL_EXPR and IDLE_CALL.match(self.of(cursor)):
            return
        if parent is not None and parent.kind == Kind.COMPOUND_STMT:
            self.statement(cursor)
        if cursor.kind in (Kind.BINARY_OPERATOR, Kind.CALL_EXPR):
            self.binary(cursor)
        if cursor.kind == Kind.CALL_EXPR:
            self.extremum(cursor)
        if cursor.kind in (Kind.INTEGER_LITERAL, Kind.FLOATING_LITERAL):
            self.literal(cursor)
        if cursor.kind in (Kind.IF_STMT, Kind.CONDITIONAL_OPERATOR):
            self.condition(cursor)
        for child in cursor.get_children():
            self.walk(child, cursor)


def points(tree):
    """Every mutant of the layers, in the order of files and places."""
    index = ci.Index.create()
    found = []
    for layer, globs in LAYERS.items():
        files = sorted(path for glob in globs for path in Path(tree).glob(glob)
                       if not path.stem.endswith(("_output", "_options", "_command")))
        # One parse for a directory, whose names in anonymous namespaces are unique.
        unit = "".join(f'#include "{path}"\n' for path in files)
        parsed = index.parse("unit.cpp", args=["-std=c++20", f"-I{tree}/src", "-Wno-everything"],
                             unsaved_files=[("unit.cpp", unit)])
        errors = [d for d in parsed.diagnostics if d.severity >= ci.Diagnostic.Error]
        if errors:
            raise SystemExit(f"mutants: clang does not read {layer}: {errors[0]}")
        by_file = {str(path): Finder(layer, str(path), path.read_text()) for path in files}
        for top in parsed.cursor.get_children():
            if top.location.file is not None and top.location.file.name in by_file:
                by_file[top.location.file.name].walk(top)
        for finder in by_file.values():
            if not finder.text.isascii():
                finder.found = []  # offsets are of bytes
            unique = {m.key(): m for m in finder.found}
            found += sorted(unique.values(), key=lambda m: (m.start, -m.end, m.changed))
    for mutant in found:
        mutant.file = str(Path(mutant.file).relative_to(tree))
    return found


def instrumented(text, mutants):
    """The text with its mutants in it: [(id, mutant)]. Inner points are instrumented in the original branch alone."""
    def write(start, end, inside):
        out, at, i = [], start, 0
        while i < len(inside):
            first = inside[i][1]
            same = [entry for entry in inside[i:] if (entry[1].start, entry[1].end) == (first.start, first.end)]
            rest = inside[i + len(same):]
            nested = [entry for entry in rest if entry[1].end <= first.end]
            out.append(text[at:first.start])
            original = write(first.start, first.end, nested)
            statement = first.kind.startswith("statement")
            for number, mutant in reversed(same):
                on = f"::scalecalc::mutation::on({number})"
                if statement and mutant.kind.startswith("statement"):
                    original = f"if ({on}) {{ {mutant.changed}; }} else {original}"
                elif mutant.kind == "condition negated":
                    original = f"(::scalecalc::mutation::on({number}) != static_cast<bool>({original}))"
                else:
                    original = f"({on} ? {mutant.changed} : ({original}))"
            out.append(original)
            at = first.end
            i += len(same) + len(nested)
        out.append(text[at:end])
        return "".join(out)

    ordered = sorted(mutants, key=lambda entry: (entry[1].start, -entry[1].end, entry[1].kind.startswith("statement")
                                                 and -1, entry[0]))
    return write(0, len(text), ordered)
