"""docs/book.md against the conformance files and the catalog: its two tables are generated. --update writes them.

usage: book.py SOURCE_DIR [--update]
"""
import pathlib
import re
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
CHAPTERS = {1: "Rooflines", 2: "TPUs", 3: "Sharded matrices", 4: "Transformer arithmetic", 5: "Training",
            6: "Training LLaMA 3 on TPUs", 7: "Inference", 8: "Serving LLaMA 3 on TPUs", 9: "Profiling",
            10: "Programming in JAX", 12: "GPUs"}


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


def cases_table(root):
    cases = []
    for path in sorted((root / "tests/conformance").glob("*.yaml")):
        cases += yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]
    rows = []
    for chapter, title in CHAPTERS.items():
        inside = [c for c in cases if c["chapter"] == chapter]
        rows += [f"### Chapter {chapter}: {title} ({len(inside)} cases)", "", "| section | command | cases |", "|---|---|---|"]
        sections = {}
        for case in inside:
            run = case.get("run") or case["expect"][0]["run"]
            key = (str(case["where"]), run.split()[1])
            sections.setdefault(key, []).append(case["id"])
        for (where, command), ids in sorted(sections.items()):
            rows.append(f"| {where.replace('|', '/')} | `{command}` | {', '.join(ids)} |")
        rows.append("")
    disagreeing = [c for c in cases if "disagreement" in c]
    rows += [f"### Where the book disagrees with itself ({len(disagreeing)})", "", "| case | why |", "|---|---|"]
    rows += [f"| {c['id']} | {c['disagreement'].replace('|', '/')} |" for c in disagreeing]
    return rows, len(cases)


def replace(text, name, rows):
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not pattern.search(text):
        sys.exit(f"docs/book.md has no place for {name}")
    return pattern.sub(lambda m: m.group(1) + "\n".join(rows) + "\n" + m.group(2), text)


def main():
    root = pathlib.Path(sys.argv[1])
    path = root / "docs/book.md"
    text = path.read_text(encoding="utf-8")
    rows, count = cases_table(root)
    wanted = replace(replace(text, "rates", rates_table(root)), "cases", rows)
    if "--update" in sys.argv:
        path.write_text(wanted, encoding="utf-8")
        return 0
    if wanted != text:
        print("docs/book.md is not what tests/lint/book.py --update would write")
        return 1
    print(f"{count} cases of the book are mapped")
    return 0


sys.exit(main())
