"""Fits every chip and software stack that has enough measured runs and writes the sets that predict unseen runs better
than the unfitted coefficients into configs/hardware, and what came of each fit into docs/accuracy.md.

    python3 tests/fit/stacks.py ROOT SCALECALC [--date 2026-11]

Fits start from the files without any stack's block, so the outcome does not depend on what was shipped before."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

TRAIN = "configs/measurements/train.yaml"
FEWEST_RUNS = 6  # a few coefficients need a few runs; held-out error decides
DATE = "2026-11"


def load(path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def plain(name):
    return re.sub(r"[-_ ]", "", str(name).lower())


def names(folder):
    """Every name and alias in a folder of the catalog, and the file it stands for."""
    out = {}
    for path in sorted(folder.glob("*.yaml")):
        document = load(path)
        for name in [document["name"], *document.get("aliases", [])]:
            out[plain(name)] = document["name"]
    return out


def efficiency_lines(lines):
    """Where the efficiency block begins (its key's line) and where the next top-level key stands."""
    start = next((i for i, line in enumerate(lines) if line.startswith("efficiency:")), None)
    if start is None:
        return None
    end = next((i for i in range(start + 1, len(lines)) if re.match(r"\S", lines[i])), len(lines))
    return start, end


def is_serving(block):
    """Whether a stack's lines are of a serving engine, which tests/fit/serving.py fits."""
    return any(line.startswith("      serving:") for line in block)


def without_stacks(text):
    """The text without any stack's block, and the blocks."""
    lines = text.splitlines()
    found = efficiency_lines(lines)
    if not found:
        return text, []
    start, end = found
    kept, blocks, inside = [], [], False
    for line in lines[start + 1:end]:
        if re.match(r"  \S", line):
            inside = line.startswith("  stacks:")
        if not inside:
            kept.append(line)
        elif re.match(r"    \S", line):
            blocks.append([line])
        elif blocks and not line.startswith("  stacks:"):
            blocks[-1].append(line)
    block = [lines[start], *kept] if kept else []
    return "\n".join([*lines[:start], *block, *lines[end:]]) + "\n", blocks


def with_stacks(text, blocks, serving=False):
    """`blocks`: the lines of each stack, indented by four. Those of engines stay unless they are the ones to replace."""
    text, old = without_stacks(text)
    blocks = [*blocks, *(block for block in old if is_serving(block) != serving)]
    blocks.sort(key=lambda block: (is_serving(block), block[0]))
    if not blocks:
        return text
    lines = text.splitlines()
    new = ["  stacks:", *(line for block in blocks for line in block)]
    found = efficiency_lines(lines)
    if found:
        lines[found[1]:found[1]] = new
    else:
        at = next(i for i, line in enumerate(lines) if re.match(r"(disagreements|sources):", line))
        lines[at:at] = ["efficiency:", *new]
    return "\n".join(lines) + "\n"


def fit(root, binary, configs, chip, stack, date):
    run = subprocess.run([binary, "calibrate", TRAIN, "--hw", chip, "--stack", stack, "--date", date, "--config-dir",
                          str(configs), "--json"], cwd=root, capture_output=True, text=True)
    if run.returncode != 0:
        return None
    return json.loads(run.stdout)


def percent(value):
    return f"{100 * value:.1f} %"


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def summary(root, binary, configs, fitted):
    """Every row that can be predicted: held out where its stack was fitted and shipped, unfitted elsewhere."""
    run = subprocess.run([binary, "validate", TRAIN, "--config-dir", str(configs), "--json"], cwd=root,
                         capture_output=True, text=True, check=True)
    rows = json.loads(run.stdout)["rows"]
    unseen = {row["id"]: row["error_outside"] for f in fitted for row in f["fit"]["rows"]}
    lines = ["| every run, unseen | rows | by a fitted set | mean | median | bias | unfitted mean | median | bias |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for name, chosen in (("all", rows), ("core", [r for r in rows if r["subset"] == "core"])):
        after = [unseen.get(r["id"], r["error"]) for r in chosen]
        before = [r["error"] for r in chosen]
        cells = [name, len(chosen), sum(r["id"] in unseen for r in chosen)]
        for errors in (after, before):
            sizes = [abs(e) for e in errors]
            cells += [percent(sum(sizes) / len(sizes)), percent(median(sizes)), f"{100 * sum(errors) / len(errors):+.1f} %"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    binary = os.path.abspath(sys.argv[2])
    date = sys.argv[sys.argv.index("--date") + 1] if "--date" in sys.argv else DATE
    chips, stacks = names(root / "configs/hardware"), names(root / "configs/stacks")
    groups = collections.Counter()
    for row in load(root / TRAIN)["rows"]:
        chip, stack = chips.get(plain(row["chip"])), stacks.get(plain(row.get("framework", "")))
        if chip and stack:
            groups[chip, stack] += 1
    rows, shipped = [], collections.defaultdict(list)
    fitted = []
    with tempfile.TemporaryDirectory() as folder:
        configs = pathlib.Path(folder)
        shutil.copytree(root / "configs/hardware", configs / "hardware")
        for path in (configs / "hardware").glob("*.yaml"):
            path.write_text(without_stacks(path.read_text(encoding="utf-8"))[0], encoding="utf-8")
        for (chip, stack), count in sorted(groups.items()):
            found = fit(root, binary, configs, chip, stack, date) if count >= FEWEST_RUNS else None
            if found is None or found["query"]["rows"] < FEWEST_RUNS or found["fit"]["held_out_by"] == "nothing":
                continue
            errors = {e["of"]: e for e in found["errors"]}
            better = found["fit"]["better"]
            if better:
                fitted.append(found)
                block = found["fit"]["yaml"].splitlines()
                shipped[chip].append([line for line in block if line.startswith("    ")])
            rows.append([chip, stack, found["query"]["rows"], found["query"]["sources"], found["fit"]["held_out_by"],
                         percent(errors["before"]["mean_abs_error"]), percent(errors["inside"]["mean_abs_error"]),
                         percent(errors["outside"]["mean_abs_error"]), percent(errors["outside"]["median_abs_error"]),
                         f"{100 * errors['outside']['bias']:+.1f} %", percent(found["query"]["coverage"]),
                         "yes" if better else "no"])
            print(*rows[-1], sep="\t", flush=True)
        table = ["| chip | stack | rows | sources | held out by | unfitted | inside | held out | median | bias | in band | "
                 "shipped |", "|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|---|"]
        table += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        table += ["", *summary(root, binary, configs, fitted)]
    for path in sorted((root / "configs/hardware").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        wanted = with_stacks(text, shipped[path.stem])
        if wanted != text:
            path.write_text(wanted, encoding="utf-8")
    document = root / "docs/accuracy.md"
    text = document.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- stacks -->\n).*?(<!-- /stacks -->)", re.S)
    document.write_text(pattern.sub(lambda m: m.group(1) + "\n".join(table) + "\n" + m.group(2), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
