"""docs/book.md against what the program says of the book, and against the catalog: both parts are generated. --update
writes them.

usage: book.py SOURCE_DIR BINARY [--update]
"""
import json
import math
import pathlib
import re
import subprocess
import sys

import yaml

BOOK = {"tpu-v2": "tpu-v2", "tpu-v3": "tpu-v3", "tpu-v4p": "tpu-v4", "tpu-v5e": "tpu-v5e", "tpu-v5p": "tpu-v5p",
        "tpu-v6e": "tpu-v6e", "tpu-v7x": "tpu-v7", "v100": "v100", "a100": "a100-80g", "h100": "h100-sxm",
        "h200": "h200", "h800": "h800", "b200": "b200", "gb200-nvl72": "gb200-nvl72"}
RATES = [("bf16", ("compute", "matmul", "bf16")),
         ("int8", ("compute", "matmul", "int8")), ("fp8", ("compute", "matmul", "fp8")),
         ("HBM bandwidth", ("hbm", "bandwidth")), ("HBM capacity", ("hbm", "capacity")),
         ("link, one way", ("network", 0, ("link_bandwidth", "bandwidth_per_chip"))),
         ("host link", ("host", "pcie_bandwidth"))]

def at(document, path):
    for step in path:
        if isinstance(step, tuple):
            step = next((s for s in step if isinstance(document, dict) and s in document), None)
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return str(document)


def number(text):
    match = re.fullmatch(r"\s*([\d.]+)\s*([kMGTP]?i?)(\S*)\s*", text or "")
    if not match:
        return None
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Gi": 2**30, "Ti": 2**40, "Mi": 2**20}
    return float(match.group(1)) * scale[match.group(2)] * (0.125 if match.group(3).startswith("b") else 1)


def rates_table(root):
    rows = ["| book | catalog | rate | book's | vendor's |", "|---|---|---|---|---|"]
    for book, plain in BOOK.items():
        ours = yaml.safe_load((root / f"configs/hardware/book/{book}.yaml").read_text(encoding="utf-8"))
        theirs = yaml.safe_load((root / f"configs/hardware/{plain}.yaml").read_text(encoding="utf-8"))
        for label, path in RATES:
            a, b = at(ours, path), at(theirs, path)
            if number(a) and number(b) and abs(number(a) / number(b) - 1) > 1e-9:
                rows.append(f"| `book/{book}` | `{plain}` | {label} | {a} | {b} |")
    return rows


def asked(binary, *words):
    done = subprocess.run([binary, "book", *words], capture_output=True, text=True, check=True)
    return done.stdout


def section_rows(binary, number):
    """The figures of a section as the program prints them, questions one level below the section."""
    out = asked(binary, number, "--solve", "-o", "markdown").rstrip("\n").split("\n")
    rows = []
    for line in out[1:]:
        if line == "## About the commands":  # below the last question, the same of every section
            break
        if line.startswith("## "):
            rows.append(f"##### {line[3:]}")
        elif line.startswith("- $ "):
            rows.append(f"- `{line[4:]}`")
        else:
            rows.append(line)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def cases_table(binary):
    rows, errata = [], []
    chapters = json.loads(asked(binary, "--json"))["chapters"]
    for chapter in chapters:
        number = str(chapter["chapter"])
        document = json.loads(asked(binary, number, "--json"))
        rows += [f"### Chapter {number}: {chapter['title']} ({chapter['questions']} questions)", "",
                 f"{chapter['figures']} figures; {chapter['exercises']} of the questions are exercises. "
                 f"[The text]({chapter['page']}).", ""]
        for section in document["sections"]:
            rows += [f"#### {section['section']} {section['title']}", *section_rows(binary, section["section"]), ""]
            figures = json.loads(asked(binary, section["section"], "--solve", "--json"))["figures"]
            for figure in figures:
                if figure["erratum"] and (figure["id"], figure["erratum"]) not in errata:
                    errata.append((figure["id"], figure["erratum"]))
    counted = sum(chapter["errata"] for chapter in chapters)
    assert counted == len(errata), f"scalecalc book counts {counted} errata and prints {len(errata)}"
    rows += [f"### Where the book disagrees with itself ({counted})", "", "| case | why |", "|---|---|"]
    rows += [f"| {name} | {why.replace('|', '/')} |" for name, why in errata]
    return rows, sum(chapter["questions"] for chapter in chapters)


def last_place(text):
    """Of a printed number: one in its last digit that is not zero."""
    digits, _, exponent = text.lower().partition("e")
    whole, _, part = digits.partition(".")
    power = int(exponent or 0)
    if part.rstrip("0"):
        return 10.0 ** (power - len(part.rstrip("0")))
    return 10.0 ** (power + len(whole) - len(whole.rstrip("0")))


def arithmetic(root):
    """What is wrong with `by` and `within`: the first has to give the printed figure, the second to be no wider than
    what rounded figures make of it."""
    problems = []
    for path in sorted((root / "configs/book").glob("chapter-*.yaml")):
        for section in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)["sections"]:
            for case in section["cases"]:
                for figure in case["expect"]:
                    if "within" not in figure:
                        continue
                    name = f"{case['id']} {figure['at']}"
                    if not re.fullmatch(r"(?:sqrt|[\d.e+*/() -])+", figure["by"]):
                        problems.append(f"{name}: by is no arithmetic: {figure['by']}")
                        continue
                    printed, given = float(figure["book"]), eval(figure["by"], {"sqrt": math.sqrt})
                    if abs(given - printed) >= last_place(figure["book"]):
                        problems.append(f"{name}: {figure['by']} is {given}, the book prints {figure['book']}")
                    off = abs(float(figure["value"]) / printed - 1)
                    if not off * (1 - 1e-9) <= float(figure["within"]) <= max(1.2 * off, off + 1e-4):
                        problems.append(f"{name}: off by {off:.5f}, and within is {figure['within']}")
    return problems


def replace(text, name, rows):
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not pattern.search(text):
        sys.exit(f"docs/book.md has no place for {name}")
    return pattern.sub(lambda m: m.group(1) + "\n".join(rows) + "\n" + m.group(2), text)


def main():
    root = pathlib.Path(sys.argv[1])
    problems = arithmetic(root)
    if problems:
        print("\n".join(problems))
        return 1
    path = root / "docs/book.md"
    text = path.read_text(encoding="utf-8")
    rows, count = cases_table(sys.argv[2])
    wanted = replace(replace(text, "rates", rates_table(root)), "cases", rows)
    if "--update" in sys.argv:
        path.write_text(wanted, encoding="utf-8")
        return 0
    if wanted != text:
        print("docs/book.md is not what tests/lint/book.py . BINARY --update would write")
        return 1
    print(f"{count} questions of the book are answered")
    return 0


sys.exit(main())
