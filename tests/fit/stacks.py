"""Fits every software stack that has enough measured runs, first over all chips of an efficiency family, as factors on
the chips' own coefficients, then chip by chip. Factors that predict unseen runs better than the unfitted coefficients go
into configs/efficiency; a chip's own set into configs/hardware where whole sources were held out from it and it gains
more than its standard error over what stands without it; and what came of each fit into docs/accuracy.md.

    python3 tests/fit/stacks.py ROOT SCALECALC [--date 2026-11] [--half fit]

What ships is fitted to all rows; --half fit is for choosing what to fit and how (configs/splits.yaml).
Fits start from the files without any stack's block, so the outcome does not depend on what was shipped before."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

SETS = [f"configs/measurements/{name}.yaml" for name in ("train", "train-2", "small-steps")]
FEWEST_RUNS = 6  # a few coefficients need a few runs; held-out error decides
DATE = "2026-11"
HALF = sys.argv[sys.argv.index("--half") + 1] if "--half" in sys.argv else "all"


def load(path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def rows_of(path):
    document = load(path)
    return [{**document.get("common", {}), **row} for row in document["rows"]]


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
        at = next((i for i, line in enumerate(lines) if re.match(r"(disagreements|sources):", line)), len(lines))
        lines[at:at] = ["efficiency:", *new]
    return "\n".join(lines) + "\n"


def family_without_stacks(text):
    """The same for an efficiency family's file, where they stand at the top level."""
    kept, inside = [], False
    for line in text.splitlines():
        if re.match(r"\S", line):
            inside = line.startswith("stacks:")
        if not inside:
            kept.append(line)
    return "\n".join(kept) + "\n"


def family_with_stacks(text, blocks):
    text = family_without_stacks(text)
    if not blocks:
        return text
    new = "\n".join(["stacks:", *(line for block in blocks for line in block)]) + "\n"
    at = text.find("\nsources:\n") + 1 or len(text)
    return text[:at] + new + text[at:]


def fit(root, binary, configs, target, stack, date):
    """`target`: ("--hw", chip) or ("--family", name)."""
    run = subprocess.run([binary, "calibrate", *SETS, *target, "--half", HALF, "--stack", stack, "--date", date,
                          "--config-dir", str(configs), "--json"], cwd=root, capture_output=True, text=True)
    if run.returncode != 0:
        return None
    found = json.loads(run.stdout)
    few = found["query"]["rows"] < FEWEST_RUNS or found["fit"]["held_out_by"] == "nothing"
    return None if few else found


def percent(value):
    return f"{100 * value:.1f} %"


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def errors_of(found):
    return {e["of"]: e for e in found["errors"]}


def beyond_chance(found, over):
    """Whether runs of sources held out gain more over "gain" (the file's coefficients) or "gain_over_family" than the
    standard error of that gain."""
    fit = found["fit"]
    gain, error = fit[over], fit[over + "_standard_error"]
    return fit["held_out_by"] == "source" and gain is not None and error is not None and gain > error


def gain_text(fit, over):
    error = fit[over + "_standard_error"]
    return f"{100 * fit[over]:+.1f} ± {100 * error:.1f}" if error is not None else f"{100 * fit[over]:+.1f}"


def class_lines(root, binary, configs, band):
    """Coverage by class of run: of rows that a shipped fit held out by source and by model (whose band is half as large
    again), each by the band of its fit, and of the rest by the unfitted one."""
    run = subprocess.run([binary, "validate", *SETS, "--config-dir", str(configs), "--json"], cwd=root,
                         capture_output=True, text=True, check=True)
    by = ("source", "model", "not fitted")
    classes = collections.defaultdict(lambda: {name: [] for name in by})
    for row in json.loads(run.stdout)["rows"]:
        held_out_by, inside = band.get(row["id"], ("not fitted", row["low"] <= row["measured"] <= row["high"]))
        for name in (row["class"], "all"):
            classes[name][held_out_by].append(inside)
    lines = ["| class of run | sources held out: rows | in band | models held out: rows | in band | not fitted: rows | "
             "in band |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, found in sorted(classes.items(), key=lambda item: -sum(map(len, item[1].values()))):
        cells = [name]
        for rows in found.values():
            cells += [len(rows), percent(sum(rows) / len(rows)) if rows else ""]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def table_row(name, stack, found, shipped):
    errors = errors_of(found)
    family = errors.get("family")
    over = "gain_over_family" if family else "gain"
    return [name, stack, found["query"]["rows"], found["query"]["sources"], found["fit"]["held_out_by"],
            percent(errors["before"]["mean_abs_error"]), percent(errors["inside"]["mean_abs_error"]),
            percent(family["mean_abs_error"]) if family else "", percent(errors["outside"]["mean_abs_error"]),
            percent(errors["outside"]["median_abs_error"]), f"{100 * errors['outside']['bias']:+.1f} %",
            percent(found["query"]["coverage"]), gain_text(found["fit"], over),
            f"{found['query']['degrees_of_freedom']:.1f} of {len(found['coefficients'])}", shipped]


def summary(root, binary, configs, unseen):
    """Every row that can be predicted, in sum and by the set it stands in: held out where a fit to its stack is shipped,
    unfitted elsewhere."""
    run = subprocess.run([binary, "validate", *SETS, "--config-dir", str(configs), "--json"], cwd=root,
                         capture_output=True, text=True, check=True)
    rows = json.loads(run.stdout)["rows"]
    lines = ["| every run, unseen | rows | by a fitted set | mean | median | bias | unfitted mean | median | bias |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    of_set = {row["id"]: pathlib.Path(name).stem for name in SETS for row in rows_of(root / name)}
    parts = [(f"`{name}`", [r for r in rows if of_set[r["id"]] == name]) for name in dict.fromkeys(of_set.values())]
    for name, chosen in (("all", rows), ("core", [r for r in rows if r["subset"] == "core"]), *parts):
        after = [unseen.get(r["id"], r["error"]) for r in chosen]
        before = [r["error"] for r in chosen]
        cells = [name, len(chosen), sum(r["id"] in unseen for r in chosen)]
        for errors in (after, before):
            sizes = [abs(e) for e in errors]
            cells += [percent(sum(sizes) / len(sizes)), percent(median(sizes)), f"{100 * sum(errors) / len(errors):+.1f} %"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def block_of(found, indent):
    """The lines of a stack in the file that it goes into."""
    return [line for line in found["fit"]["yaml"].splitlines() if line.startswith(indent)]


def unfitted_block(stack, found):
    """A stack that was measured on the family but whose fit is not shipped: it can be asked for, and says why."""
    why = "measured in too few runs to fit, or in runs of one model"
    if found is not None:
        errors = errors_of(found)
        why = (f"a fit errs by {percent(errors['outside']['mean_abs_error'])} on runs held out, none by "
               f"{percent(errors['before']['mean_abs_error'])} ({found['query']['rows']} runs, "
               f"{found['query']['sources']} sources)")
    return [f"  {stack}:", f'    note: "{why}"']


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    binary = os.path.abspath(sys.argv[2])
    date = sys.argv[sys.argv.index("--date") + 1] if "--date" in sys.argv else DATE
    chips, stacks = names(root / "configs/hardware"), names(root / "configs/stacks")
    family_of = {load(path)["name"]: load(path)["family"] for path in (root / "configs/hardware").glob("*.yaml")}
    groups, families = collections.Counter(), collections.Counter()
    for row in (row for name in SETS for row in rows_of(root / name)):
        chip, stack = chips.get(plain(row["chip"])), stacks.get(plain(row.get("framework", "")))
        if chip and stack:
            groups[chip, stack] += 1
            families[family_of[chip], stack] += 1
    table = ["| chip or family | stack | rows | sources | held out by | unfitted | inside | family's factors | held out | "
             "median | bias | in band | gain | degrees of freedom | shipped |",
             "|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    of_family, of_chip, unseen, band = collections.defaultdict(list), collections.defaultdict(list), {}, {}
    degrees = 0  # of what is shipped
    with tempfile.TemporaryDirectory() as folder:
        configs = pathlib.Path(folder)
        for kind, strip in (("hardware", lambda text: without_stacks(text)[0]), ("efficiency", family_without_stacks)):
            shutil.copytree(root / "configs" / kind, configs / kind)
            for path in (configs / kind).glob("*.yaml"):
                path.write_text(strip(path.read_text(encoding="utf-8")), encoding="utf-8")
        factors = set()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            def fits(counts, flag):
                def one(target):
                    return fit(root, binary, configs, (flag, target[0]), target[1], date)
                return pool.map(lambda target: (target, one(target)),
                                sorted(target for target, count in counts.items() if count >= FEWEST_RUNS))
            family_fits, chip_fits = fits(families, "--family"), fits(groups, "--hw")
        fitted_families = dict(family_fits)
        for family, stack in sorted(families):
            found = fitted_families.get((family, stack))
            better = found is not None and found["fit"]["better"]
            if not better:
                of_family[family].append(unfitted_block(stack, found))
            if found is None:
                continue
            if better:
                factors.add((family, stack))
                of_family[family].append(block_of(found, "  "))
                degrees += found["query"]["degrees_of_freedom"]
                unseen.update({row["id"]: row["error_outside"] for row in found["fit"]["rows"]})
                band.update({row["id"]: (row["held_out_by"], row["in_band"]) for row in found["fit"]["rows"]})
            table.append("| " + " | ".join(map(str, table_row(family, stack, found, "factors" if better else "no"))) + " |")
            print(table[-1], flush=True)
        for (chip, stack), found in chip_fits:
            if found is None:
                continue
            errors = errors_of(found)
            has_factors = (family_of[chip], stack) in factors
            # Without other chips the family's factors are these rows' own: the set would say the same again.
            alone = has_factors and "family" not in errors
            better = not alone and beyond_chance(found, "gain_over_family" if has_factors else "gain")
            if better:
                degrees += found["query"]["degrees_of_freedom"]
                of_chip[chip].append(block_of(found, "    "))
                unseen.update({row["id"]: row["error_outside"] for row in found["fit"]["rows"]})
                band.update({row["id"]: (row["held_out_by"], row["in_band"]) for row in found["fit"]["rows"]})
            shipped = "own set" if better else "the family's" if has_factors else "no"
            table.append("| " + " | ".join(map(str, table_row(chip, stack, found, shipped))) + " |")
            print(table[-1], flush=True)
        sets = len(factors), sum(map(len, of_chip.values()))
        table += ["", f"Shipped: {sets[0]} sets of factors and {sets[1]} sets of single chips, {degrees:.0f} effective "
                  f"degrees of freedom for {len(unseen)} rows.", "", *summary(root, binary, configs, unseen), "",
                  *class_lines(root, binary, configs, band)]
        print(*table[-17:], sep="\n")
    for kind, write, blocks in (("hardware", with_stacks, of_chip), ("efficiency", family_with_stacks, of_family)):
        for path in sorted((root / "configs" / kind).glob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            wanted = write(text, blocks[path.stem])
            if wanted != text:
                path.write_text(wanted, encoding="utf-8")
    document = root / "docs/accuracy.md"
    text = document.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- stacks -->\n).*?(<!-- /stacks -->)", re.S)
    document.write_text(pattern.sub(lambda m: m.group(1) + "\n".join(table) + "\n" + m.group(2), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
