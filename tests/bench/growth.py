"""How the search grows with the machine: one question at 64 to 1,048,576 chips, candidates and processor time of each.
User CPU seconds of the whole command, all threads, the least of three runs: other work on the machine moves it less
than the clock on the wall. Usage: growth.py BINARY"""
import json
import os
import subprocess
import sys

QUESTION = ["llama3.1-405b", "--hw", "h100-sxm"]
COUNTS = [64 << i for i in range(15)]
RUNS = 3
BAR = 32


def cpu_seconds(words: list[str]) -> tuple[float, str]:
    before = os.times()
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    after = os.times()
    if result.returncode not in (0, 3):  # 3: nothing fits, which takes a search too
        raise SystemExit(result.stderr)
    return after.children_user - before.children_user, result.stdout


def main(binary: str) -> int:
    rows = []
    for chips in COUNTS:
        runs = [cpu_seconds([binary, "train", *QUESTION, "--chips", f"{chips}..{chips}", "-o", "jsonl", "--quiet"])
                for _ in range(RUNS)]
        search = json.loads(runs[0][1])["search"]
        rows.append((chips, search["candidates"], search["evaluated"], min(seconds for seconds, _ in runs)))
    longest = max(seconds for *_, seconds in rows)
    print(f"{' '.join(QUESTION)}: legal layouts, layouts costed, and user CPU seconds by chips")
    print(f"{'chips':>9}  {'candidates':>10}  {'costed':>7}  {'CPU':>6}  {'ns each':>7}")
    for chips, candidates, evaluated, seconds in rows:
        bar = "#" * round(BAR * seconds / longest)
        each = f"{seconds / candidates * 1e9:7.0f}" if candidates else f"{'-':>7}"
        print(f"{chips:>9,}  {candidates:>10,}  {evaluated:>7,}  {seconds:5.2f}s  {each}  {bar}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
