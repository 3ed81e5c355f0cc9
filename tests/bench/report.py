"""./dev bench: wall-clock benchmarks, then instructions per candidate and the share of each layer by callgrind, which
counts the same whatever else the machine does; then how the search grows with the machine."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import growth

QUESTIONS = {
    "llama3-70b on 8,960 tpu-v5p": ["llama3-70b", "--hw", "tpu-v5p", "--chips", "8960"],
    "llama3.1-405b on 16,384 h100-sxm": ["llama3.1-405b", "--hw", "h100-sxm", "--chips", "16384"],
}
LAYERS = [
    ("enumerate branches", r"Enumerator|enumerate|divisors|shardings"),
    ("layer costs", r"LayerCoster|network_cost|layer_ops|roofline"),
    ("placement and channels", r"TorusPlacer|placements|make_channel|take\(|fold|Undominated|dominates|envelope|members_per"),
    ("step time and bounds", r"step_time|StepBuilder|phase_time|PhaseTime|step_lower_bound|all_gather_time|all_reduce_time|hide"),
    ("memory", r"memory_use|MemoryCounter|sizes_of|dense_parameters|expert_parameters"),
    ("search and ranking", r"Search::|Ranking|Ranker|introsort|_Rb_tree|Candidate"),
    ("allocation", r"malloc|_int_free|free|operator new"),
]


def callgrind(binary: pathlib.Path, args: list[str]) -> tuple[int, list[tuple[int, str]]]:
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(binary), "train", *args, "--json"],
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


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    subprocess.run([str(build / "tests" / "benchmarks"), "--benchmark_min_time=0.5"], check=True)
    for name, args in QUESTIONS.items():
        answer = json.loads(subprocess.run([str(build / "scalecalc"), "train", *args, "--json"], check=True,
                                           capture_output=True, text=True).stdout)
        search = answer["search"]
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
