"""Fits the serving coefficients of every chip and engine that was measured and writes the sets that predict sources held
out better than the families' coefficients do, of three sources or more, into configs/hardware, and what came of it into docs/accuracy.md.

    python3 tests/fit/serving.py ROOT SCALECALC [--date 2026-11] [--half fit]

What ships is fitted to all rows; --half fit is for choosing what to fit and how (configs/splits.yaml)."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import shutil

from stacks import DATE, HALF, median, percent, with_stacks, without_stacks

SERVE = "configs/measurements/serve.yaml"
FEWEST_SOURCES = 3  # of fewer the fit cannot tell what is the chip's and what is one publication's


def fit(root, binary, configs, date):
    run = subprocess.run([binary, "calibrate", SERVE, "--half", HALF, "--date", date, "--config-dir", str(configs),
                          "--json"], cwd=root, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def line_of(name, rows, key):
    errors = [r[key] for r in rows]
    sizes = [abs(e) for e in errors]
    return [name, percent(median(sizes)), percent(sum(sizes) / len(sizes)), f"{100 * sum(errors) / len(errors):+.1f} %"]


def whole_table(found):
    rows = found["rows"]
    small = [r for r in rows if r["batch_class"] == "1-32"]
    out = ["| coefficients | median | mean | bias | median, batch 1 to 32 | mean | bias |", "|---|--:|--:|--:|--:|--:|--:|"]
    for key, name in (("error_naive", "naive baseline, leave one source out"), ("error_before", "the families'"),
                      ("error_outside", "fitted, leave one source out"), ("error_inside", "fitted to all rows")):
        cells = line_of(name, rows, key) + line_of("", small, key)[1:]
        out.append("| " + " | ".join(cells) + " |")
    tpot = [r for r in rows if r["phase"] in ("decode", "online")]
    held = line_of("", tpot, "error_outside")
    return [f"{len(rows)} rows, of these {len(small)} at batch 1 to 32.", "", *out, "",
            f"Times per output token, {len(tpot)} rows of decode and under load, leave one source out: {held[1]} in the "
            f"median, {held[2]} in the mean, bias {held[3]}."]


def axis_table(found, axis, name):
    groups = collections.defaultdict(list)
    for row in found["rows"]:
        groups[row[axis] or "not known"].append(row)
    out = [f"| {name} | rows | held out: median | mean | bias | naive: median | mean |", "|---|--:|--:|--:|--:|--:|--:|"]
    for key, rows in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        cells = [key, len(rows), *line_of("", rows, "error_outside")[1:], *line_of("", rows, "error_naive")[1:3]]
        out.append("| " + " | ".join(map(str, cells)) + " |")
    return out


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    binary = os.path.abspath(sys.argv[2])
    date = sys.argv[sys.argv.index("--date") + 1] if "--date" in sys.argv else DATE
    with tempfile.TemporaryDirectory() as folder:
        configs = pathlib.Path(folder)
        shutil.copytree(root / "configs/hardware", configs / "hardware")
        for path in (configs / "hardware").glob("*.yaml"):
            path.write_text(without_stacks(path.read_text(encoding="utf-8"))[0], encoding="utf-8")
        found = fit(root, binary, configs, date)
    shipped = collections.defaultdict(list)
    table = ["| chip | engine | rows | sources | family's | inside | held out | held out, mean | shipped |",
             "|---|---|--:|--:|--:|--:|--:|--:|---|"]
    for s in found["sets"]:
        gains = s["outside"]["mean_abs_error"] < s["before"]["mean_abs_error"]
        better = gains and s["sources"] >= FEWEST_SOURCES
        if better:
            shipped[s["chip"]].append([line for line in s["yaml"].splitlines() if line.startswith("    ")])
        cells = [s["chip"], s["stack"], s["rows"], s["sources"], percent(s["before"]["median_abs_error"]),
                 percent(s["inside"]["median_abs_error"]), percent(s["outside"]["median_abs_error"]),
                 percent(s["outside"]["mean_abs_error"]), "yes" if better else "no"]
        table.append("| " + " | ".join(map(str, cells)) + " |")
    for path in sorted((root / "configs/hardware").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        wanted = with_stacks(text, shipped[path.stem], serving=True)
        if wanted != text:
            path.write_text(wanted, encoding="utf-8")
    parts = {"serving": whole_table(found), "serving-sets": table, "serving-chips": axis_table(found, "chip", "chip"),
             "serving-engines": axis_table(found, "stack", "engine"), "serving-phases": axis_table(found, "phase", "phase"),
             "serving-batches": axis_table(found, "batch_class", "batch")}
    document = root / "docs/accuracy.md"
    text = document.read_text(encoding="utf-8")
    for name, lines in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        text = pattern.sub(lambda m, lines=lines: m.group(1) + "\n".join(lines) + "\n" + m.group(2), text)
    document.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
