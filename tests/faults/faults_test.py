"""System calls that fail, one after the other, under every command: open, write, fsync, rename, mmap, the start of a
thread, an allocation (shim.cpp, preloaded); files that may not grow further, at every size of a small study. The program
says what failed with a documented exit status, and leaves no temporary and no half file. A study goes on past a question
that the program dies in.
Usage: faults_test.py BINARY SHIM SOURCE; SCALECALC_FAULTS_EACH=N tries N places of each call (default 3)."""
import errno
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = SHIM = SOURCE = ""
EACH = int(os.environ.get("SCALECALC_FAULTS_EACH", "3"))

STUDY = "command: roofline\narguments: [matmul, '{b}x4096x8192']\naxes: {hw: [tpu-v5e], b: [1, 8, 64]}\n"

LAUNCH = pathlib.Path(__file__).resolve().parents[1] / "data" / "launch"

# A short question of every command.
QUESTIONS = {
    "train": "train llama3-8b --hw h100-sxm --chips 8",
    "serve": "serve llama3-8b --hw h100-sxm --chips 1 --prompt 512 --generate 128",
    "compare": "compare llama3-8b --hw h100-sxm,tpu-v5p --chips 8",
    "sensitivity": "sensitivity llama3-8b --hw h100-sxm --chips 8",
    "distill": "distill llama3.2-1b --teacher llama3-8b --hw h100-sxm --chips 8 --tokens 1B",
    "rl": "rl llama3-8b --hw h100-sxm --chips 8 --prompt 512 --generate 512",
    "scaling-law": "scaling-law --flops 1e21",
    "trace": "trace llama3-8b --hw h100-sxm --chips 8",
    "profile": "profile recording.json --hw h100-sxm",
    "collective": "collective all-reduce --hw h100-sxm --group 8 --bytes 1GB",
    "matmul": "matmul A[I_X,J]*B[J,K]->C[I_X,K] --hw tpu-v5p --mesh X=4 --dims I=1024,J=1024,K=1024",
    "roofline": "roofline matmul 512x8192x28672 --hw tpu-v5e",
    "bounds": "bounds llama3-8b --hw tpu-v5p --chips 64",
    "model": "model llama3-8b",
    "hw": "hw h100-sxm",
    "validate": "validate examples --hw h100-sxm",
    "calibrate": "calibrate --hw a100-sxm-40gb",
    "export": f"export {LAUNCH}/plan.json --to accelerate",
    "book": "book 1.1",
    "lint": f"lint {LAUNCH}/megatron.sh --hw h100-sxm --model llama3-8b",
    "batch": "batch study.yaml",
}
QUICK = ("train", "collective", "matmul", "roofline", "bounds", "model", "hw", "batch", "scaling-law")
# What each failure is: exit statuses it may end with. 0: it was not needed; 2: a file of the question could not be read.
CALLS = {"open": (errno.EMFILE, {0, 2, 71, 74}), "write": (errno.ENOSPC, {0, 71, 74}), "fsync": (errno.EIO, {0, 74}),
         "rename": (errno.EXDEV, {0, 74}), "mmap": (errno.ENOMEM, {0, 71, 74}), "thread": (errno.EAGAIN, {0, 71}),
         "alloc": (errno.ENOMEM, {0, 71, 74})}


class Place:
    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="scalecalc-faults-"))
        (self.path / "study.yaml").write_text(STUDY)
        shutil.copy(SOURCE / "tests" / "data" / "profiles" / "kineto.json", self.path / "recording.json")

    def run(self, words, **kwargs):
        return subprocess.run([BINARY, *words], cwd=self.path, capture_output=True, text=True, timeout=120,
                              errors="replace", check=False,
                              **{"env": {**os.environ, "TMPDIR": str(self.path)}, "stdin": subprocess.DEVNULL, **kwargs})

    def left(self):
        return {p.name for p in self.path.iterdir()} - {"study.yaml", "recording.json", "count"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, True)


def asked(command):
    words = QUESTIONS[command].split()
    return words + (["-o", "o.jsonl", "-o", "sqlite=o.db"] if command == "batch" else ["-o", "json=o.json", "-o", "csv"])


def environment(place, call, at):
    return {**os.environ, "LD_PRELOAD": SHIM, "FAULT_CALL": call, "FAULT_AT": str(at), "TMPDIR": str(place.path),
            "FAULT_ERRNO": str(CALLS[call][0]), "FAULT_COUNT": str(place.path / "count")}


def places(count):
    """The first calls and the last, and some between."""
    if count <= EACH:
        return range(1, count + 1)
    return sorted({1 + round(i * (count - 1) / max(EACH - 1, 1)) for i in range(EACH)})


class Calls(unittest.TestCase):
    def problems(self, command, call, at):
        with Place() as place:
            done = place.run(asked(command), env=environment(place, call, at))
            found = []
            if done.returncode not in CALLS[call][1]:
                found.append(f"exit {done.returncode}")
            if done.returncode not in (0,) and "error:" not in done.stderr and call != "write":
                found.append("says nothing")  # a write that fails may be the one that says it
            allowed = {"o.json", "o.jsonl", "o.db", "o.jsonl.batch"}
            if place.left() - allowed:
                found.append(f"leaves {place.left() - allowed}")
            for name in place.left() & {"o.json", "o.jsonl"}:
                text = (place.path / name).read_text()
                try:
                    for line in [text] if name == "o.json" else text.splitlines():
                        json.loads(line)
                except ValueError:
                    found.append(f"half of {name}")
            return [f"{' '.join(asked(command))} [{call} {at}]: {p}: {done.stderr[-300:]!r}" for p in found]

    def test_every_call_of_every_command(self):
        failures, tried = [], 0
        for command in QUESTIONS if EACH > 3 else QUICK:
            for call in CALLS:
                with Place() as place:
                    place.run(asked(command), env=environment(place, call, 0))
                    count = int((place.path / "count").read_text())
                for at in places(count):
                    failures += self.problems(command, call, at)
                    tried += 1
        print(f"{tried} faults", file=sys.stderr)
        self.assertFalse(failures, "\n" + "\n".join(failures))


class Sizes(unittest.TestCase):
    def test_files_that_may_not_grow_further(self):
        def run(limit, *words):
            return place.run(words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

        with Place() as place:
            whole = place.run(["batch", "study.yaml", "-o", "o.jsonl"]) and (place.path / "o.jsonl").read_text()
        step = max(1, 4000 // (10 * EACH))
        for limit in range(0, 4000, step):
            with self.subTest(limit), Place() as place:
                done = run(limit, "batch", "study.yaml", "-o", "o.jsonl")
                self.assertIn(done.returncode, (0, 74), done.stderr)
                if done.returncode == 0:
                    self.assertEqual((place.path / "o.jsonl").read_text(), whole)
                    continue
                self.assertIn("File too large", done.stderr)
                self.assertLessEqual(place.left(), {"o.jsonl.batch"})
                # With room it goes on.
                self.assertEqual(place.run(["batch", "study.yaml", "-o", "o.jsonl"]).returncode, 0)
                self.assertEqual((place.path / "o.jsonl").read_text(), whole)


class Deaths(unittest.TestCase):
    """Questions that the program dies in: four of eight, those that read a file of their own (its hash is read otherwise)."""

    STUDY = """command: roofline
arguments: [matmul, "{b}x4096x8192"]
axes: {hw: [tpu-v5e, bad/chip.yaml], b: [1, 8, 64, 512]}
"""

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.__exit__)
        (self.place.path / "bad").mkdir()
        (self.place.path / "study.yaml").write_text(self.STUDY)
        (self.place.path / "bad" / "chip.yaml").write_text(self.place.run(["hw", "tpu-v5p", "--dump-yaml"]).stdout)

    def run_it(self, *words, of="11", code=70):
        dying = {"LD_PRELOAD": SHIM, "DIES_READING": "bad/chip.yaml", "DIES_OF": of} if of else {}
        done = self.place.run(words, env={**os.environ, "TMPDIR": str(self.place.path), **dying})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def rows(self, text, of=None):
        """Those of the good chip are as without a fault; those of the other say what happened."""
        rows = [json.loads(line) for line in text.splitlines()]
        whole = self.run_it("batch", "study.yaml", of=None, code=0).stdout.splitlines()
        self.assertEqual(text.splitlines()[:4], whole[:4])
        self.assertEqual([row["case"] for row in rows], list(range(8)))
        for row in rows[4:]:
            self.assertEqual(row["status"], "bug")
            if of:
                self.assertIn(f"died of signal {of}", row["reason"])
            self.assertIn("--hw=bad/chip.yaml", row["question"].replace("--hw ", "--hw="))

    def test_are_rows_and_the_study_goes_on(self):
        for of, said in (("11", "11 (SIGSEGV)"), ("8", "8 (SIGFPE)"), ("6", "6 (SIGABRT)"), ("stack", "11 (SIGSEGV)")):
            for jobs in ("1", "2"):
                with self.subTest(of=of, jobs=jobs):
                    done = self.run_it("batch", "study.yaml", "-o", "o.jsonl", "--restart", "--jobs", jobs, of=of)
                    self.rows((self.place.path / "o.jsonl").read_text(), said)
                    self.assertIn("the program died in 4 of the questions", done.stderr)
                    self.assertIn("8 rows: 4 ok, 4 bug", done.stderr)
                    self.assertEqual(self.place.left(), {"bad", "o.jsonl"})
                    (self.place.path / "o.jsonl").unlink()

    def test_are_rows_on_standard_output(self):
        self.rows(self.run_it("batch", "study.yaml").stdout)
        self.assertEqual(self.place.left(), {"bad"})

    def test_are_rows_of_a_planned_study(self):
        self.run_it("batch", "plan", "study.yaml", "-o", "out", "--shards", "3", code=0)
        for shard in range(3):
            self.run_it("batch", "run", "out", "--shard", f"{shard}/3")
        self.rows(self.run_it("batch", "merge", "out", code=0).stdout)

    def test_end_a_study_from_a_pipe_once_each(self):
        for _ in range(4):
            piped = {"input": self.STUDY, "stdin": None}
            done = self.place.run(["batch", "-", "-o", "o.jsonl"], **piped,
                                  env={**os.environ, "LD_PRELOAD": SHIM, "DIES_READING": "bad/chip.yaml", "DIES_OF": "11"})
            self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertEqual(self.place.run(["batch", "-", "-o", "o.jsonl"], **piped).returncode, 70)
        self.rows((self.place.path / "o.jsonl").read_text(), "11 (SIGSEGV)")

    def test_end_a_strict_study(self):
        done = self.run_it("batch", "study.yaml", "-o", "o.jsonl", "--strict")
        self.assertIn("stopped at a question without an answer: scalecalc roofline", done.stderr)
        self.assertIn("died of signal 11", done.stderr)

    def test_another_processes_signal_is_no_death_of_a_question(self):
        (self.place.path / "study.yaml").write_text(self.STUDY.replace("[1, 8, 64, 512]", "1..90000+1"))
        process = subprocess.Popen([BINARY, "batch", "study.yaml", "-o", "o.jsonl"], cwd=self.place.path,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list((self.place.path).glob("o.jsonl.batch/shard-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGSEGV)
        self.assertEqual(process.wait(timeout=60), -signal.SIGSEGV)
        self.assertFalse(list((self.place.path).glob("o.jsonl.batch/died.*")))


class Shortage(unittest.TestCase):
    def test_memory_and_threads_are_named(self):
        with Place() as place:
            for call, word in (("thread", "a thread could not be started"), ("alloc", "memory ran out")):
                done = place.run(["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--json"],
                                 env=environment(place, call, 1 if call == "thread" else 50))
                self.assertEqual(done.returncode, 71, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(json.loads(done.stdout)["exit"], 71)

    def test_budgets_end_in_a_partial_answer(self):
        with Place() as place:
            words = ["train", "deepseek-v3", "--hw", "h100-sxm", "--chips", "16384", "--json"]
            done = place.run([*words, "--time-limit", "300ms"])
            if done.returncode == 0:
                self.skipTest("answered within the limit")
            self.assertEqual(done.returncode, 75, done.stderr)
            self.assertIn("--time-limit 300 ms is reached", done.stderr)
            document = json.loads(done.stdout)
            self.assertTrue(document.get("partial") or document["schema"] == "scalecalc/error/1")
            done = place.run([*words, "--memory-limit", "1MB"])
            self.assertEqual(done.returncode, 75, done.stderr)
            self.assertIn("--memory-limit 1 MB is reached", done.stderr)


if __name__ == "__main__":
    BINARY, SHIM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
    unittest.main(argv=["faults", *sys.argv[4:]], verbosity=1)
