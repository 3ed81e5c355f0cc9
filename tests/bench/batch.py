"""Questions a second: scalecalc batch against the program once per question, both on all cores, and the peak memory of a
large study. Usage: batch.py BINARY [POINTS_OF_THE_LARGE_STUDY]"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

BINARY = str(pathlib.Path(sys.argv[1]).resolve())
CORES = len(os.sched_getaffinity(0))

ROOFLINE = """command: roofline
arguments: [matmul, "{{batch}}x{{d}}x8192"]
axes:
  hw: [tpu-v5e, tpu-v5p, h100-sxm, mi300x]
  batch: 1..{batch}+1
  d: 512..{d}+512
"""
TRAIN = """command: train
arguments: ["{model}"]
flags: {batch-tokens: 4M, tokens: 1T, top: 1}
axes:
  hw: [h100-sxm, tpu-v5p]
  model: [llama3-8b, llama2-13b, llama3-70b]
  chips: 64..1024+64
"""


def timed(*words, **kwargs):
    """Wall clock and processor seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, cpu


def compare(name, study, place, processes):
    (place / "s.yaml").write_text(study)
    wall, cpu = timed(BINARY, "batch", "s.yaml", "-o", "r.jsonl", cwd=place)
    import json
    questions = [json.loads(line)["question"] for line in (place / "r.jsonl").open()]
    step = max(1, len(questions) // processes)
    asked = questions[::step]
    lines = "".join(q.replace("scalecalc ", "", 1) + " -o jsonl\n" for q in asked)
    wall_1, cpu_1 = timed("xargs", "-P", str(CORES), "-L", "1", BINARY, input=lines.encode(), cwd=place)
    for what, n, w, c in (("once per question", len(asked), wall_1, cpu_1), ("batch", len(questions), wall, cpu)):
        print(f"{name:<9} {what:<18} {n:>7,} questions {n / w:>9,.0f} a second {1e6 * c / n:>9,.0f} us of processor each")
    print(f"{name:<9} ratio {wall_1 / len(asked) / (wall / len(questions)):.1f} by the clock, "
          f"{cpu_1 / len(asked) / (cpu / len(questions)):.1f} by processor time")


def large(points, place):
    d = 50
    (place / "s.yaml").write_text(ROOFLINE.format(batch=points // 4 // d, d=512 * d))
    start = time.monotonic()
    process = subprocess.Popen([BINARY, "batch", "s.yaml", "-o", "r.jsonl"], cwd=place, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    rows = sum(1 for _ in (place / "r.jsonl").open("rb"))
    print(f"{rows:,} rows in {time.monotonic() - start:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of processor, "
          f"peak {usage.ru_maxrss / 1024:.1f} MiB")


def main():
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        compare("roofline", ROOFLINE.format(batch=250, d=512 * 20), place, 2000)
        compare("train", TRAIN, place, 96)
        large(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000, place)


main()
