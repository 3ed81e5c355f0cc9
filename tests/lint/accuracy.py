"""docs/accuracy.md and its picture against the program: the tables and docs/accuracy.svg are generated from what
`scalecalc validate` says of configs/measurements. --update writes them. Also: every model and source that a measurement
file declares is used by a row.

usage: accuracy.py SOURCE_DIR BINARY [--update]
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import yaml

TRAIN = "configs/measurements/train.yaml"
MEMORY = "configs/measurements/memory.yaml"
SERVE = "configs/measurements/serve.yaml"
SPEED = ("train", "train-2", "small-steps")
# Scored apart: what they measure, and whether coefficients are fitted to them.
FURTHER = {"train-2": ("step time", True), "small-steps": ("step time", True), "memory-2": ("memory", False)}
RL = "rl"
WORST = 20
# Points of the picture: chips by the beginning of their names, colours that colour-blind readers can tell apart.
SERIES = [("V100", ("v100",), "#999999"), ("A100", ("a100",), "#e69f00"), ("H100, H200, H800", ("h",), "#0072b2"),
          ("B200, B300, GB200, GB300", ("b", "gb"), "#009e73"), ("TPU", ("tpu",), "#d55e00"), ("others", ("",), "#cc79a7")]


def validate(root, binary, *args):
    result = subprocess.run([binary, "validate", *args, "--json"], cwd=root, capture_output=True, text=True,
                            timeout=300, check=False)
    if result.returncode != 0:
        sys.exit(f"scalecalc validate {' '.join(args)}: exit {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout)


def percent(value, signed=False):
    if value is None:
        return ""
    return f"{100 * value:{'+' if signed else ''}.1f} %"


def number(value):
    return "" if value is None else f"{value:.2f}"


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "|".join("---" if i == 0 else "--:" for i in range(len(head))) + "|"]
    return out + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


ERRORS = ["rows", "predicted", "mean", "median", "90 %", "largest", "bias", "in band"]


def errors(s):
    return [s["rows"], s["predicted"], percent(s["mean_abs_error"]), percent(s["median_abs_error"]),
            percent(s["p90_abs_error"]), percent(s["max_abs_error"]), percent(s["bias"], True), percent(s["coverage"])]


def by(document, axis):
    groups = [g for g in document["groups"] if g["by"] == axis]
    return sorted(groups, key=lambda g: (-g["rows"], g["name"]))


def group_table(document, axis):
    return table([axis, *ERRORS], [[g["name"], *errors(g)] for g in by(document, axis)])


def overall_table(train, ideal):
    rows = [["all, rows equal", *errors(train["summary"])]]
    for g in by(train, "subset"):
        rows.append([f"{g['name']}, rows equal", *errors(g)])
    for name, s in [("all", train["summary"]), *((g["name"], g) for g in by(train, "subset"))]:
        rows.append([f"{name}, sources equal", "", "", percent(s["source_mean_abs_error"]),
                     percent(s["source_median_abs_error"]), "", "", percent(s["source_bias"], True), ""])
    out = table(["step time", *ERRORS], rows)
    s = train["summary"]
    out += ["", f"Order of layouts: {s['layout_sets']} jobs of one source were measured in three or more layouts. Mean "
            f"Spearman {number(s['spearman'])}, Kendall {number(s['kendall'])}; the layout scalecalc would pick is "
            f"{percent(s['regret'])} slower than the best measured one in the mean. Of {s['model_sets']} models five "
            f"layouts and more were measured on one kind of chip, on any machine, batch and source: by chip-seconds a "
            f"token Spearman is {number(s['model_spearman'])} in the mean and {number(s['model_median_spearman'])} in the "
            f"median, Kendall {number(s['model_kendall'])}, and the pick {percent(s['model_regret'])} slower.", "",
            f"Runs that are declared not to fit in memory, and ran: {s['out_of_memory']}; that fit only by savings their "
            f"sources do not state: {s['made_to_fit']}. Runs faster than `--efficiency ideal` says is possible: "
            f"{ideal['summary']['slower_than_measured']} of {ideal['summary']['predicted']}."]
    return out


def halves_table(root, binary):
    """The errors of each half of all sources (configs/splits.yaml), by class of run."""
    def line(what, s, half):
        sources = percent(s["source_mean_abs_error"]) if "source_mean_abs_error" in s else ""
        return [what, half, *errors(s)[:5], sources, *errors(s)[6:]]

    parts = {}
    for half in ("judge", "fit"):
        speed = validate(root, binary, "--half", half, *(f"configs/measurements/{name}.yaml" for name in SPEED))
        parts["step time", half] = speed["summary"]
        parts.update({(f"step time, `{g['name']}`", half): g for g in by(speed, "class")})
        parts["memory", half] = validate(root, binary, "--half", half, MEMORY)["summary"]
        serving = validate(root, binary, "--half", half, SERVE)
        parts["serving", half] = serving["summary"]
        parts.update({(f"serving, {g['name']}", half): g for g in by(serving, "phase")})
    order = list(dict.fromkeys(what for what, _ in parts))
    return table(["rows of", "half", *ERRORS[:5], "sources equal", *ERRORS[6:]],
                 [line(what, parts[what, half], half) for what in order for half in ("judge", "fit")
                  if (what, half) in parts])


def worst_table(document):
    rows = sorted(document["rows"], key=lambda r: -abs(r["error"]))[:WORST]
    return table(["row", "layout", "measured", "predicted", "error", "doubt"],
                 [[r["id"], f"{r['chips']} x {r['chip']}, {r['degrees']}", f"{r['measured']:.3g} s",
                   f"{r['predicted']:.3g} s", percent(r["error"], True), r["doubt"]] for r in rows])


def left_out_table(*documents):
    rows = {}
    for column, document in enumerate(documents):
        for reason, count in document["summary"]["skipped"].items():
            rows.setdefault(reason, [0] * len(documents))[column] = count
    return table(["reason", "step time", "memory"],
                 [[reason, *(n or "" for n in counts)] for reason, counts in sorted(rows.items())])


def serving_left_out_table(serving):
    return table(["reason", "rows"], sorted(serving["summary"]["skipped"].items()))


def memory_tables(memory):
    out = table(["memory", *ERRORS], [["all", *errors(memory["summary"])]])
    return out + [""] + group_table(memory, "group") + [
        "", f"Runs declared not to fit: {memory['summary']['out_of_memory']}. Runs that fit only by savings their sources "
        f"do not state: {memory['summary']['made_to_fit']}."]


def further_tables(sets, rl):
    rows = [[f"`{name}`, {what}", "yes" if fitted else "no", *errors(sets[name]["summary"])]
            for name, (what, fitted) in FURTHER.items()]
    s = rl["summary"]
    rows.append([f"`{RL}`, step", "no", s["rows"], s["predicted"], *(percent(s[k]) for k in (
        "mean_abs_error", "median_abs_error", "p90_abs_error", "max_abs_error")), percent(s["bias"], True), ""])
    out = table(["set", "fitted to", *ERRORS], rows)
    for name in ("train-2", "memory-2"):
        out += ["", f"`{name}` by source:", "", *group_table(sets[name], "group")]
    reasons = [[name, reason, count] for name, found in [*sets.items(), (RL, rl)]
               for reason, count in sorted(found["summary"].get("skipped", {}).items())]
    return out + ["", *table(["set", "left out", "rows"], reasons)]


def series_of(chip):
    return next(i for i, (_, starts, _) in enumerate(SERIES) if chip.startswith(starts))


def picture(document):
    """Predicted over measured against the measured step time, both on logarithmic axes."""
    width, height, left, right, top, bottom = 760, 430, 56, 24, 34, 62
    seconds = [r["measured"] for r in document["rows"]]
    low, high = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    least, most = 0.125, 2.0

    def x(value):
        return left + (width - left - right) * (math.log10(value) - low) / (high - low)

    def y(ratio):
        share = (math.log2(min(max(ratio, least), most)) - math.log2(least)) / (math.log2(most) - math.log2(least))
        return height - bottom - (height - top - bottom) * share

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           'font-size="12" fill="#333">', f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="18" font-size="14">Predicted over measured step time, {len(seconds)} published runs; '
           'the shade is 10 % either way</text>',
           f'<rect x="{left}" y="{y(1.1):.1f}" width="{width - left - right}" height="{y(0.9) - y(1.1):.1f}" '
           'fill="#e8f1e8"/>']
    for ratio in (0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0):
        out.append(f'<path d="M{left} {y(ratio):.1f}H{width - right}" stroke="{"#666" if ratio == 1 else "#ddd"}"/>')
        out.append(f'<text x="{left - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for power in range(low, high + 1):
        out.append(f'<path d="M{x(10 ** power):.1f} {top}V{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x(10 ** power):.1f}" y="{height - bottom + 16}" text-anchor="middle">'
                   f'{10.0 ** power:g} s</text>')
    at = left
    for index, (label, _, colour) in enumerate(SERIES):
        points = sorted((round(x(r["measured"]), 1), round(y(r["predicted"] / r["measured"]), 1))
                        for r in document["rows"] if series_of(r["chip"]) == index)
        if not points:
            continue
        path = "".join(f"M{px:g} {py:g}h0" for px, py in points)
        out.append(f'<path d="{path}" stroke="{colour}" stroke-width="4" stroke-linecap="round" stroke-opacity="0.6" '
                   'fill="none"/>')
        out.append(f'<circle cx="{at + 4}" cy="{height - 18}" r="4" fill="{colour}"/>'
                   f'<text x="{at + 10}" y="{height - 14}" font-size="11">{label} ({len(points)})</text>')
        at += 26 + 6 * len(f"{label} ({len(points)})")
    return "\n".join([*out, "</svg>"]) + "\n"


def replace(text, name, rows):
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not pattern.search(text):
        sys.exit(f"docs/accuracy.md has no place for {name}")
    return pattern.sub(lambda m: m.group(1) + "\n".join(rows) + "\n" + m.group(2), text)


def unused(file):
    """Declared names that no row uses."""
    document = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    out = []
    for part, key in (("models", "model"), ("sources", "source")):
        used = {{**document.get("common", {}), **row}[key] for row in document["rows"]}
        out += [f"{file.name}: {part}: nothing uses {name}" for name in document.get(part, {}) if name not in used]
    return out


def unseen_sentences(text):
    """What prose says of runs that no fit has seen, from the table that the fit wrote: by file, the words it must have."""
    rows = {cells[0].strip("`"): cells for cells in
            ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("| `"))
            if len(cells) == 9}
    train, second = rows["train"], rows["train-2"]
    size = f"{train[3]} in the mean and {train[4]} in the median over"
    return {"docs/accuracy.md": size,
            "README.md": f"{size} 1,005 published runs, by {second[3].removesuffix(' %')} and {second[4]} over 203 more"}


def main():
    root = pathlib.Path(sys.argv[1])
    binary = os.path.abspath(sys.argv[2])
    problems = [p for path in sorted((root / "configs/measurements").glob("*.yaml")) for p in unused(path)]
    train = validate(root, binary, TRAIN)
    memory = validate(root, binary, MEMORY)
    serving = validate(root, binary, SERVE)
    ideal = validate(root, binary, TRAIN, "--efficiency", "ideal")
    further = {name: validate(root, binary, f"configs/measurements/{name}.yaml") for name in FURTHER}
    rl = validate(root, binary, f"configs/measurements/{RL}.yaml")
    path = root / "docs/accuracy.md"
    text = path.read_text(encoding="utf-8")
    wanted = text
    for name, rows in (("overall", overall_table(train, ideal)), ("halves", halves_table(root, binary)),
                       ("chips", group_table(train, "chip")),
                       ("frameworks", group_table(train, "framework")), ("precisions", group_table(train, "precision")),
                       ("worst", worst_table(train)), ("left-out", left_out_table(train, memory)),
                       ("memory", memory_tables(memory)), ("further", further_tables(further, rl)),
                       ("serving-left-out", serving_left_out_table(serving))):
        wanted = replace(wanted, name, rows)
    svg = root / "docs/accuracy.svg"
    drawn = picture(train)
    for file, words in unseen_sentences(text).items():
        if words not in " ".join((root / file).read_text(encoding="utf-8").split()):
            problems.append(f"{file} does not say of unseen runs: {words!r}")
    if "--update" in sys.argv:
        path.write_text(wanted, encoding="utf-8")
        svg.write_text(drawn, encoding="utf-8")
    else:
        if wanted != text:
            problems.append("docs/accuracy.md is not what tests/lint/accuracy.py --update would write")
        if not svg.exists() or svg.read_text(encoding="utf-8") != drawn:
            problems.append("docs/accuracy.svg is not what tests/lint/accuracy.py --update would write")
    print("\n".join(problems) or f"{train['summary']['rows']} runs, {memory['summary']['rows']} memory and "
                                 f"{serving['summary']['rows']} serving figures")
    return 1 if problems else 0


sys.exit(main())
