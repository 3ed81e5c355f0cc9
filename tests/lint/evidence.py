"""configs/evidence/train.yaml against the program: how many measured runs use each mechanism of a layout, by chip and
stack, and how far their predictions were off, as `scalecalc validate` says. --update writes the file.

usage: evidence.py SOURCE_DIR BINARY [--update]
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

FILE = "configs/evidence/train.yaml"
# The dimension that says how many ways a mechanism's group has.
WAYS = {"tensor": "tp", "context": "cp", "expert": "ep", "expert-tensor": "etp", "pipeline": "pp"}


def asked(root, binary, *args):
    result = subprocess.run([binary, *args, "--json"], cwd=root, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(result.stdout)


def document(root, binary):
    rows = asked(root, binary, "validate")["rows"]
    family = {}
    errors = collections.defaultdict(list)
    ways = collections.defaultdict(int)
    for row in rows:
        chip = row["chip"]
        if chip not in family:
            family[chip] = asked(root, binary, "hw", chip)["chips"][0]["family"]
        for mechanism in row["mechanisms"]:
            key = family[chip], chip, row["stack"], mechanism
            errors[key].append(abs(row["error"]))
            if mechanism in WAYS:
                degrees = dict(re.findall(r"(\w+) (\d+)", row["degrees"]))
                ways[key] = max(ways[key], int(degrees[WAYS[mechanism]]))
    lines = ["# Written by tests/lint/evidence.py --update.", "schema: scalecalc-evidence/1", "name: train",
             f'source: "{len(rows)} runs of configs/measurements, predicted with the coefficients shipped"',
             "runs:"]
    for (kind, chip, stack, mechanism), found in sorted(errors.items()):
        most = ways[kind, chip, stack, mechanism]
        lines.append(f"  - {{family: {kind}, chip: {chip}, stack: {stack}, mechanism: {mechanism}, runs: {len(found)}, "
                     + (f"most_ways: {most}, " if most else "") + f"error: {100 * sum(found) / len(found):.1f}%}}")
    return "\n".join(lines) + "\n"


def main():
    root, binary = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = document(root, binary)
    file = root / FILE
    if "--update" in sys.argv[3:]:
        file.write_text(text, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != text:
        sys.exit(f"{FILE} does not say what scalecalc validate says: run evidence.py --update")


if __name__ == "__main__":
    main()
