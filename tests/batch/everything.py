"""Every model of the catalog on every chip, for train, serve, bounds and model: configs/studies/everything*.yaml. A row is
an answer without impossible figures (more than all of a chip's rate or memory, no number), or says in one line what the
machine or the question lacks. The whole takes a night; --every N asks one question in N.

usage: everything.py SOURCE_DIR BINARY [--every N] [--first I] [--jobs J] [STUDY...]
"""
import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

STUDIES = ["everything-model", "everything-bounds", "everything-serve", "everything"]
SHARES = {"mfu", "hfu", "memory_fraction", "fraction_of_peak"}  # of what there is, never more
EMPTY = [("memory_bytes", "capacity_bytes"), ("memory_total_bytes", "capacity_bytes"),
         ("memory_bytes_total", "memory_bytes_capacity")]


def impossible(row):
    """What no machine can do, of a row with an answer."""
    out = []
    for key, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            out.append(f"{key} is {value}")
        if key in SHARES and isinstance(value, (int, float)) and not 0 <= value <= 1 + 1e-9:
            out.append(f"{key} is {value:.4g}")
        if key.endswith("_s") and isinstance(value, (int, float)) and value < 0:
            out.append(f"{key} is {value:.4g}")
    for used, there in EMPTY:
        if isinstance(row.get(used), (int, float)) and isinstance(row.get(there), (int, float)):
            if row[used] > row[there] * (1 + 1e-9):
                out.append(f"{used} is {row[used]:.4g} of {row[there]:.4g}")
    return out


def problems_of(row):
    if row["status"] == "ok":
        return impossible(row)
    if row["status"] == "bug":
        return ["a bug"]
    reason = row.get("reason", "")
    if not reason or "\n" in reason:
        return ["no reason in one line"]
    return ["the reason is no number"] if re.search(r"\b(nan|inf)\b", reason) else []


def asked(binary, source, study, args):
    """Rows of one shard in `every` of the study."""
    with tempfile.TemporaryDirectory(prefix="scalecalc-everything-") as place:
        def run(*words):
            return subprocess.run([binary, "batch", *map(str, words)], cwd=place, capture_output=True, text=True, check=False)
        file = pathlib.Path(source).resolve() / "configs/studies" / f"{study}.yaml"
        for words in (("plan", file, "-o", "out", "--shards", args.every, "--yes"),
                      ("run", "out", "--shard", f"{args.first % args.every}/{args.every}", "--jobs", args.jobs)):
            done = run(*words)
            if done.returncode != 0:
                sys.exit(f"{study}: exit {done.returncode}: {done.stderr[-1000:]}")
        for shard in pathlib.Path(place, "out").glob("shard-*.jsonl"):
            for line in shard.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if "status" in row:
                    yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("binary")
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    binary = str(pathlib.Path(args.binary).resolve())
    wrong = 0
    for study in args.studies:
        counts = collections.Counter()
        for row in asked(binary, args.source, study, args):
            counts[row["status"]] += 1
            for problem in problems_of(row):
                wrong += 1
                print(f"{row['question']}: {problem}{': ' + row['reason'] if row.get('reason') else ''}")
        print(f"{study}: {', '.join(f'{n:,} {status}' for status, n in sorted(counts.items())) or 'nothing asked'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
