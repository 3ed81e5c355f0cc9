"""./dev bench: wall-clock benchmarks, then instructions per candidate and the share of each layer by callgrind, which
counts the same whatever else the machine does; then how the search grows with the machine."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import growth

QUESTIONS = {
    "llama3.1-405b on 16,384 h100-sxm": ["llama3.1-405b", "--hw", "h100-sxm", "--chips", "16384"],
    "llama3-70b on 8,960 tpu-v5p": ["llama3-70b", "--hw", "tpu-v5p", "--chips", "8960"],
    "gpt3-175b on 4,096 a100-80g": ["gpt3-175b", "--hw", "a100-80g", "--chips", "4096"],
    "deepseek-v3 on 2,048 h800": ["deepseek-v3", "--hw", "h800", "--chips", "2048"],
}
LAYERS = [
    ("enumeration", r"Space::|divisors|shardings|recipes|partition|stages_of|most_treated"),
    ("layer costs", r"LayerCoster|OpWork|network_cost|layer_ops|roofline|Work<double>|runs_again"),
    ("placement and channels", r"TorusPlacer|placements|make_channel|best_switched|unplaced|alone|take\(|fold|Undominated|dominates|envelope|members_per"),
    ("step time and bounds", r"step_time|StepBuilder|phases|phase_time|PhaseTime|PhaseBuilder|PhaseTotal|StageEnds|stage_time|stage_end|outline|gather|step_lower_bound|all_gather_time|all_reduce_time|hide"),
    ("memory", r"memory_use|MemoryCounter|MemberTables|_bytes|per_microbatch|in_flight|sizes_of|dense_parameters|expert_parameters"),
    ("search and ranking", r"Search::|FamilySearch|Ranking|Ranker|introsort|_Rb_tree|Candidate"),
    ("allocation", r"malloc|_int_free|free|operator new"),
]


def callgrind(binary: pathlib.Path, args: list[str]) -> tuple[int, list[tuple[int, str]]]:
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(binary), "train", *args, "--json", "--perf"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(["callgrind_annotate", "--threshold=99.9", str(out)], check=True, capture_output=True,
                              text=True).stdout
    rows = []
    total = 0
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+) \([^)]*\)\s+(.*)", line)
        if not match:
            continue
        count = int(match.group(1).replace(",", ""))
        if "PROGRAM TOTALS" in line:
            total = count
        else:
            rows.append((count, match.group(2)))
    return total, rows


def answer(binary: pathlib.Path, args: list[str]) -> tuple[dict, float, float]:
    """The search block of the answer, user CPU seconds of the whole command and its peak memory in MB."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(binary), "train", *args, "--json", "--perf"], stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        out.seek(0)
        return json.load(out)["search"], usage.ru_utime, usage.ru_maxrss / 1024


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    subprocess.run([str(build / "tests" / "benchmarks"), "--benchmark_min_time=0.5"], check=True)
    for name, args in QUESTIONS.items():
        search, user_s, peak_mb = answer(build / "scalecalc", args)
        print(f"\n{name}: {search['candidates']:,} candidates, {search['evaluated']:,} costed in full; "
              f"{user_s:.2f} s user CPU, {peak_mb:.0f} MB at the peak; ranking in {search['elapsed_s']:.2f} s")
        total, rows = callgrind(build / "scalecalc", args)
        print(f"\n{name}: {search['candidates']:,} candidates in {search['elapsed_s']:.3f} s "
              f"= {search['candidates'] / search['elapsed_s']:,.0f} per second; {search['evaluated']:,} costed in full")
        print(f"  {total:,} instructions for the whole command = {total / search['candidates']:,.0f} per candidate")
        left = total
        for label, pattern in LAYERS:
            share = sum(count for count, text in rows if re.search(pattern, text))
            rows = [(count, text) for count, text in rows if not re.search(pattern, text)]
            left -= share
            print(f"  {share / total:6.1%}  {label}")
        print(f"  {left / total:6.1%}  the rest (start-up, catalog, figures, output)")
    print()
    return growth.main(str(build / "scalecalc"))


sys.exit(main())
