"""Estimates `scale_loss`, what a step loses with each doubling of its chips beyond what is predicted of it.

    python3 tests/fit/scale.py ROOT SCALECALC [--set KEY=VALUE]...

Rows of configs/measurements are grouped where they differ in their number of chips alone: source, model, chip, stack,
precision, layout apart from data ranks, recipe and tokens of a chip in a step are the same. Within the groups
ln(measured / predicted) is regressed on log2(chips); the standard error is robust to errors that rows of one source
share. What doubles is hosts, or on a torus slices; parts of one are left out. Predictions are without the shipped value."""
import collections
import csv
import io
import math
import pathlib
import subprocess
import sys

import yaml

SETS = [f"configs/measurements/{name}.yaml" for name in ("train", "train-2")]
DATA_RANKS = ("dp", "fsdp")


def rows_of(path):
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [{**document.get("common", {}), **row} for row in document["rows"]]


def predictions(root, binary, sets):
    command = [binary, "validate", *SETS, "--set", "hw.efficiency.scale_loss.value=0", "--set",
               "hw.efficiency.scale_loss.source=none", "--config-dir", "configs", *sets, "--quiet", "-o", "csv"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if not run.stdout:
        sys.exit(run.stderr)
    return {row["id"]: row for row in csv.DictReader(io.StringIO(run.stdout))}


def tiers_of(file):
    network = file.get("network") or []
    return [tier for tier in (network.values() if isinstance(network, dict) else network) if isinstance(tier, dict)]


def families(root):
    """Efficiency family by chip, and whether it is on a torus."""
    files = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (root / "configs/hardware").glob("*.yaml")]
    chips = [(name, file) for file in files for name in [file["name"], *file.get("aliases", [])]]
    return ({name: file["family"] for name, file in chips},
            {name: any(tier.get("kind") == "torus" for tier in tiers_of(file)) for name, file in chips})


def said(groups):
    value, robust, plain = slope(groups)
    sources = {p[2] for g in groups for p in g}
    return (f"{100 * value:+.2f} % a doubling, standard error {100 * robust:.2f} % (robust), {100 * plain:.2f} % "
            f"(plain); {len(groups)} groups of {sum(map(len, groups))} rows from {len(sources)} sources")


def group_of(row):
    """What must be alike; None where the row does not say how much a chip does."""
    batch = row.get("global_batch_seqs") or (row.get("global_batch_tokens") or 0) / row["seq_len"]
    if not batch:
        return None
    layout = sorted((key, str(value)) for key, value in row.get("parallel", {}).items() if key not in DATA_RANKS)
    facts = [row.get(key) for key in ("group", "framework", "model", "chip", "seq_len", "micro_batch", "precision",
                                      "recompute", "date", "optimizer", "attention", "schedule")]
    return (round(batch * row["seq_len"] / row["chips"]), *map(str, facts), *layout)


def slope(groups):
    """Within-group least squares of (x, y, cluster, family); value, robust standard error, plain one."""
    points = []
    for members in groups:
        means = [sum(p[i] for p in members) / len(members) for i in (0, 1)]
        points += [(x - means[0], y - means[1], cluster) for x, y, cluster, _ in members]
    squares = sum(x * x for x, _, _ in points)
    value = sum(x * y for x, y, _ in points) / squares
    scores = collections.defaultdict(float)
    for x, y, cluster in points:
        scores[cluster] += x * (y - value * x)
    clusters = len(scores)
    robust = math.sqrt(sum(s * s for s in scores.values()) * clusters / max(1, clusters - 1)) / squares
    freedom = max(1, len(points) - len(groups) - 1)
    plain = math.sqrt(sum((y - value * x) ** 2 for x, y, _ in points) / freedom / squares)
    return value, robust, plain


def main():
    root, binary, *sets = sys.argv[1:]
    root = pathlib.Path(root).resolve()
    family, tori = families(root)
    predicted = predictions(root, pathlib.Path(binary).resolve(), sets)
    groups = collections.defaultdict(list)
    for path in SETS:
        for row in rows_of(root / path):
            key, found = group_of(row), predicted.get(row["id"])
            torus = found is not None and tori[found["chip"]]
            parts = row["chips"] / (row.get("scaleup_domain" if torus else "chips_per_node") or 8)
            if key is None or found is None or not found["predicted"] or parts < 1 or found["doubt"]:
                continue
            ratio = math.log(float(found["measured"]) / float(found["predicted"]))
            groups[(torus and row["scaleup_domain"], *key)].append((math.log2(parts), ratio, row["group"], family[found["chip"]]))
    kept = [g for g in groups.values() if len({p[0] for p in g}) > 1]
    print("scale_loss", said(kept))
    for name in sorted({g[0][3] for g in kept}):
        print(f"{name}: {said([g for g in kept if g[0][3] == name])}")
    sources = sorted({p[2] for g in kept for p in g})
    for source in sources:
        own = [g for g in kept if g[0][2] == source]
        span = max(p[0] for g in own for p in g)
        print(f"  {source}: {100 * slope(own)[0]:+.2f} % in {len(own)} groups of {sum(map(len, own))} rows, to {2 ** span:.0f} hosts or slices")
    without = [slope([g for g in kept if g[0][2] != s])[0] for s in sources] if len(sources) > 1 else []
    if without:
        print(f"without any one source: {100 * min(without):.2f} to {100 * max(without):.2f} %")


if __name__ == "__main__":
    main()
