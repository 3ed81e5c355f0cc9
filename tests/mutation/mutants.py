#!/usr/bin/env python3
"""Whether tests notice changed code: mutants of what computes, each run against the quick tests that come by it.

  mutants.py SOURCE TREE BUILD [--count N] [--seed S] [--steps STEP,...] (--help names the others)

SOURCE is the repository, TREE a copy that is changed, BUILD its build directory. Steps: instrument, build, reach, run,
report. All mutants are in one build (mutate.py); a process is one of them by SCALECALC_MUTANT. A mutant is killed by a
failing test, a crash or a test that takes ten times as long; tests of more than --slow seconds are not asked. Tests that
killed many mutants for their seconds are asked first. What was found stays in BUILD/mutants (points.json, reached.txt,
results.jsonl); a run that was stopped goes on from there.
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mutate

HERE = Path(__file__).parent
KINDS = ("unit", "property", "conformance", "agreement", "golden")
LEAST_OF_LAYER = 100  # a small layer is not left to chance
ENVIRONMENT = {"RC_PARAMS": "seed=1 max_success=10", "XDG_CONFIG_HOME": "/dev/null/config", "SCALECALC_CONFIG_PATH": ""}
MEMORY = 6 << 30


def copy_tree(source, tree):
    """Files whose bytes differ are written; the others keep their times, so that they are not compiled again."""
    names = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    for name in names:
        origin, copy = Path(source, name), Path(tree, name)
        if not origin.is_file():
            continue
        data = origin.read_bytes()
        if not copy.is_file() or copy.read_bytes() != data:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            copy.chmod(origin.stat().st_mode)


def sample(points, count, seed):
    """As many of each layer as it has of all, and not fewer than LEAST_OF_LAYER."""
    chance = random.Random(seed)
    layers = collections.defaultdict(list)
    for point in points:
        layers[point.layer].append(point)
    chosen = []
    for layer in mutate.LAYERS:
        share = max(LEAST_OF_LAYER, round(count * len(layers[layer]) / max(1, len(points))))
        chosen += chance.sample(layers[layer], min(share, len(layers[layer])))
    return chosen


def write_mutants(source, tree, mutants):
    """The files of the tree with these mutants: {id: mutant}."""
    by_file = collections.defaultdict(list)
    for number, mutant in mutants.items():
        by_file[mutant.file].append((number, mutant))
    runtime = "src/base/units.cpp"
    for file in set(by_file) | {runtime}:
        text = mutate.instrumented(Path(source, file).read_text(), by_file[file])
        text = f'#include "base/mutant.h"\n#line 1 "{file}"\n' + text
        if file == runtime:
            text += (HERE / "runtime.inc").read_text()
        if Path(tree, file).read_text() != text:
            Path(tree, file).write_text(text)


def instrument(args, state):
    copy_tree(args.source, args.tree)
    chosen = sample(mutate.points(args.source), args.count, args.seed)
    mutants = {i + 1: m for i, m in enumerate(chosen)}
    (Path(args.tree) / "src/base/mutant.h").write_text((HERE / "mutant.h").read_text())
    listener = (HERE / "listener.cpp").read_text()
    for kind in KINDS[:-1]:  # the last of its directory, so that the others compile in the batches they have
        (Path(args.tree) / f"tests/{kind}/zz_mutation.cpp").write_text(listener)
    golden = "tests/golden/golden_test.cpp"
    (Path(args.tree) / golden).write_text(Path(args.source, golden).read_text() + listener)
    write_mutants(args.source, args.tree, mutants)
    save_points(state, mutants)


def save_points(state, mutants):
    rows = [{"id": i, **{k: v for k, v in vars(m).items()}} for i, m in mutants.items()]
    (state / "points.json").write_text(json.dumps(rows, indent=0))


def load_points(state):
    mutants = {}
    for row in json.loads((state / "points.json").read_text()):
        number = row.pop("id")
        mutants[number] = mutate.Mutant(**row)
    return mutants


def build(args, state):
    """Mutants on lines that the compiler refuses are dropped until there are none."""
    targets = [f"{kind}_tests" for kind in KINDS]
    subprocess.run(["cmake", "-S", args.tree, "-B", args.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DSCALECALC_UNITY_SIZE={args.unity}"], check=True,
                   stdout=subprocess.DEVNULL)
    mutants = load_points(state)
    stillborn = 0
    while True:
        done = subprocess.run(["ninja", "-C", args.build, "-k", "0", f"-j{args.jobs}", *targets], capture_output=True,
                              text=True)
        (state / "build.log").write_text(done.stdout + done.stderr)
        if done.returncode == 0:
            break
        refused = {(m.group(1), int(m.group(2)))
                   for m in re.finditer(r"^(?:\S*/)?(src/\S+\.cpp):(\d+):\d+: (?:\S* )?error", done.stdout, re.M)}
        dropped = [i for i, m in mutants.items()
                   if any(m.file == file and m.lines[0] <= line <= m.lines[1] for file, line in refused)]
        if not dropped:  # an end of a function that a call which never returns was to keep from being reached
            dropped = [i for i, m in mutants.items() if m.kind == "statement left out" and
                       any(m.file == file and line - 12 <= m.lines[0] <= line for file, line in refused)]
        if not dropped:
            print(done.stdout[-4000:])
            raise SystemExit("mutants: the build fails, and not for a mutant")
        for i in dropped:
            del mutants[i]
        stillborn += len(dropped)
        print(f"mutants: {len(dropped)} do not compile", flush=True)
        write_mutants(args.source, args.tree, mutants)
        save_points(state, mutants)
    print(f"mutants: {len(mutants)} compiled, {stillborn} did not", flush=True)


def reach(args, state):
    """Which mutants each test comes by, and how long it takes."""
    path = state / "reached.txt"

    def ask(part):
        kind, shard = part
        out = Path(f"{path}.{kind}.{shard}")
        out.unlink(missing_ok=True)
        subprocess.run([f"{args.build}/tests/{kind}_tests", "--gtest_brief=1", f"--gtest_filter={args.tests}"],
                       env={**os.environ, **ENVIRONMENT, "SCALECALC_REACHED": str(out),
                            "GTEST_TOTAL_SHARDS": str(args.jobs), "GTEST_SHARD_INDEX": str(shard)},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=args.tree)
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(ask, [(kind, shard) for kind in args.kinds.split(",") for shard in range(args.jobs)]))
    with open(path, "w") as out:
        for part in sorted(state.glob("reached.txt.*.*")):
            kind = part.name.split(".")[2]
            out.write("".join(f"{kind} {line}\n" for line in part.read_text().splitlines()))


def tests_of(state, slow):
    """{mutant: [(seconds, kind, test)]} of tests that pass on the program as it is."""
    tests = collections.defaultdict(list)
    for line in (state / "reached.txt").read_text().splitlines():
        kind, test, outcome, ms, *ids = line.split()
        if outcome == "failed":
            print(f"mutants: {test} fails without a mutant and is left out")
        elif float(ms) / 1000 <= slow:
            for i in ids:
                tests[int(i)].append((float(ms) / 1000, kind, test))
    return tests


class Experience:
    """How many mutants each test has killed of those it was asked about."""

    def __init__(self, rows):
        self.asked, self.killed = collections.Counter(), collections.Counter(row["killed_by"] for row in rows)

    def ordered(self, tests):
        """Those first that kill most for their time; of new ones the quickest."""
        return sorted(tests, key=lambda t: -(self.killed[t[2]] + 0.2) / (self.killed[t[2]] + self.asked[t[2]] + 2) / (t[0] + 0.01))


def outcome(args, number, tests):
    """The test that fails, or None. They are asked in this order, in few processes."""
    cheap, left, budget = [], list(tests), args.seconds
    limit = 0.1
    while left and budget > 0:
        cheap, cost = [], 0.0
        limit = min(3.0, 3 * limit)
        while left and (not cheap or cost + left[0][0] <= limit) and len(cheap) < 400:
            cost += left[0][0]
            cheap.append(left.pop(0))
        budget -= cost
        for kind in KINDS:
            names = [test for _, of, test in cheap if of == kind]
            if not names:
                continue
            try:
                done = subprocess.run(
                    [f"{args.build}/tests/{kind}_tests", "--gtest_brief=1", "--gtest_fail_fast",
                     "--gtest_filter=" + ":".join(names)],
                    env={**os.environ, **ENVIRONMENT, "SCALECALC_MUTANT": str(number)}, capture_output=True, text=True,
                    errors="replace", timeout=10 + 10 * cost, cwd=args.tree,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
            except subprocess.TimeoutExpired:
                return "time"
            if done.returncode != 0:
                failed = re.search(r"FAILED\s*\] (\S+)", done.stdout)
                return failed.group(1).rstrip(",") if failed else f"status {done.returncode}"
    return None


def results(state, mutants):
    """What was found of these mutants; rows of other ones, with another seed or of changed files, say nothing."""
    path = state / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if row["id"] in mutants and row["mutant"] == list(mutants[row["id"]].key())]


def run(args, state):
    mutants, tests = load_points(state), tests_of(state, args.slow)
    path, rows = state / "results.jsonl", results(state, mutants)
    if args.again:  # those that no test noticed so far
        rows = [row for row in rows if row["killed_by"]]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    known, experience = {row["id"] for row in rows}, Experience(rows)
    order = [i for i in mutants if i not in known]
    random.Random(args.seed).shuffle(order)  # stopped early, it has still met every layer
    started = time.time()
    with open(path, "a") as out, ThreadPoolExecutor(args.jobs) as pool:
        def one(number):
            if args.until and time.time() - started > args.until:
                return
            asked = experience.ordered(tests.get(number, []))
            by = outcome(args, number, asked) if asked else None
            if by:
                experience.killed[by] += 1
            else:
                experience.asked.update(test for _, _, test in asked)
            out.write(json.dumps({"id": number, "mutant": mutants[number].key(), "tests": len(asked), "killed_by": by}) + "\n")
            out.flush()
        list(pool.map(one, order))


def report(args, state):
    mutants = load_points(state)
    explained = {}
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            key, reason = line.split(" # ", 1)
            explained[key.strip()] = reason
    rows = {row["id"]: row for row in results(state, mutants)}
    table = collections.defaultdict(collections.Counter)
    for number, row in sorted(rows.items()):
        mutant = mutants.get(number)
        if mutant is None:
            continue
        name = f"{mutant.file} | {' '.join(mutant.text.split())} | {mutant.kind}"
        here = f"{name} | {mutant.place}"
        state_of = ("killed" if row["killed_by"] else "equivalent" if name in explained or here in explained
                    else "unreached" if row["tests"] == 0 else "survived")
        table[mutant.layer][state_of] += 1
        if state_of in ("survived", "unreached") and args.list:
            print(f"{state_of} {number} {mutant.file}:{mutant.line} | {' '.join(mutant.text.split())} | {mutant.kind}"
                  f" | {mutant.place}")
    total = collections.Counter()
    print(f"{'layer':10} {'killed':>7} {'survived':>9} {'unreached':>10} {'equivalent':>11} {'killed of all':>14}")
    for layer in [*mutate.LAYERS, "all"]:
        counts = total if layer == "all" else table[layer]
        if layer != "all":
            total.update(counts)
        asked = sum(counts.values()) - counts["equivalent"]
        share = 100 * counts["killed"] / asked if asked else 0
        print(f"{layer:10} {counts['killed']:7} {counts['survived']:9} {counts['unreached']:10} {counts['equivalent']:11}"
              f" {share:12.1f} %")
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("tree")
    parser.add_argument("build")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--slow", type=float, default=2, help="seconds of a test that is not asked")
    parser.add_argument("--seconds", type=float, default=20, help="seconds of tests asked about one mutant")
    parser.add_argument("--until", type=float, default=0, help="seconds after which no further mutant is begun")
    parser.add_argument("--unity", type=int, default=10, help="files compiled together")
    parser.add_argument("--tests", default="*", help="gtest's filter of tests")
    parser.add_argument("--list", action="store_true", help="name the mutants that no test noticed")
    parser.add_argument("--kinds", default=",".join(KINDS), help="programs of tests whose reach is found (anew)")
    parser.add_argument("--again", action="store_true", help="ask again about mutants that no test noticed")
    parser.add_argument("--steps", default="instrument,build,reach,run,report")
    args = parser.parse_args()
    state = Path(args.build) / "mutants"
    state.mkdir(parents=True, exist_ok=True)
    Path(args.tree).mkdir(parents=True, exist_ok=True)
    for step in args.steps.split(","):
        print(f"mutants: {step}", flush=True)
        {"instrument": instrument, "build": build, "reach": reach, "run": run, "report": report}[step](args, state)


if __name__ == "__main__":
    sys.exit(main())
