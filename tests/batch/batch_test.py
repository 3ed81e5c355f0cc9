"""The real binary on real files: the same bytes however the work is divided, killed at any instant, on a full disk; and
what other programs make of the results. Usage: batch_test.py BINARY; SCALECALC_BATCH_KILLS=N kills it N times (default 100)."""
import csv
import json
import os
import pathlib
import pty
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import common
from common import BatchTest, SOURCE, fits, sha256, study

KILLS = int(os.environ.get("SCALECALC_BATCH_KILLS", "100"))

SMALL = """command: roofline
arguments: [matmul, "{batch}x{d}x8192"]
axes:
  hw: {hardware: tpu-v5*}
  batch: [8, 64, 512]
  d: [0, 4096]
"""


class SameBytes(BatchTest):
    def test_for_threads_processors_and_locales(self):
        whole = self.whole()
        self.assertEqual(len((self.place / "whole.jsonl").read_text().splitlines()), self.CASES)
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "--jobs", "1")
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "--jobs", "4",
                    env={**os.environ, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        one = min(os.sched_getaffinity(0))
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", preexec_fn=lambda: os.sched_setaffinity(0, {one}))
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        self.assertEqual(self.run_it("batch", "large.yaml").encode(), (self.place / "whole.jsonl").read_bytes())

    def test_for_shards_in_any_order(self):
        whole = self.whole()
        for shards in (1, 7, 64):
            self.run_it("batch", "plan", "large.yaml", "-o", f"out{shards}", "--shards", shards)
            order = list(range(shards))
            random.Random(shards).shuffle(order)
            for shard in order:
                self.run_it("batch", "run", f"out{shards}", "--shard", f"{shard}/{shards}")
            self.run_it("batch", "merge", f"out{shards}", "-o", "a.jsonl")
            self.assertEqual(sha256(self.place / "a.jsonl"), whole, shards)

    def test_the_shard_comes_from_the_environment_and_the_count_from_the_plan(self):
        self.put("small.yaml", SMALL)
        self.run_it("batch", "plan", "small.yaml", "-o", "out", "--shards", "3")
        for name, value, shard in (("SCALECALC_SHARD", "0", 0), ("SLURM_ARRAY_TASK_ID", "1", 1),
                                   ("SGE_TASK_ID", "3", 2)):
            environment = {**os.environ, name: value, "SLURM_ARRAY_TASK_COUNT": "1"}
            self.run_it("batch", "run", "out", "--shard-env", env=environment)
            self.assertTrue((self.place / "out" / f"shard-{shard:05}-of-00003.jsonl").exists(), name)
        self.run_it("batch", "run", "out", "--shard-env", env={**os.environ, "JOB_COMPLETION_INDEX": "3"}, code=2)
        self.run_it("batch", "run", "out", "--shard", "1/4", code=2)
        self.assertIn("planned with 3", self.said)
        self.assertEqual(self.run_it("batch", "status", "out", "--missing"), "")

    def test_another_version_of_the_study_is_refused(self):
        self.put("small.yaml", SMALL)
        self.run_it("batch", "plan", "small.yaml", "-o", "out", "--shards", "3")
        self.put("small.yaml", SMALL.replace("512", "513"))
        self.run_it("batch", "plan", "small.yaml", "-o", "out", "--shards", "3", code=2)
        self.assertIn("another study", self.said)


class Killed(BatchTest):
    def test_many_times(self):
        whole = self.whole()
        # So many kills that the study is done about once over; the last run is left alone.
        start = time.monotonic()
        self.run_it("batch", "large.yaml", "-o", "a.jsonl")
        each = max((time.monotonic() - start) / 50, 0.005)
        (self.place / "a.jsonl").unlink()
        chance, done = random.Random(7), 0
        for _ in range(KILLS):
            process = subprocess.Popen([common.BINARY, "batch", "large.yaml", "-o", "a.jsonl"], cwd=self.place,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, 4 * each))
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = {f.name for f in self.place.iterdir()} - {"large.yaml", "whole.jsonl", "a.jsonl", "a.jsonl.batch"}
            self.assertEqual(left, set())
            if (self.place / "a.jsonl").exists():
                # Results that appear are whole; then the study starts again.
                self.assertEqual(sha256(self.place / "a.jsonl"), whole)
                (self.place / "a.jsonl").unlink()
                done += 1
        self.run_it("batch", "large.yaml", "-o", "a.jsonl")
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        self.assertFalse((self.place / "a.jsonl.batch").exists())

    def test_the_next_run_computes_only_the_rest(self):
        process = subprocess.Popen([common.BINARY, "batch", "large.yaml", "-o", "a.jsonl", "--jobs", "1"],
                                   cwd=self.place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        landed = lambda: sum(f.stat().st_size for f in (self.place / "a.jsonl.batch").glob("shard-*"))
        for _ in range(2000):
            if (self.place / "a.jsonl.batch").exists() and landed() > 200_000:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = {f.name: f.read_bytes() for f in (self.place / "a.jsonl.batch").glob("shard-*")}
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "--jobs", "1", preexec_fn=lambda: None)
        text = (self.place / "a.jsonl").read_bytes()
        for content in before.values():  # what had landed is in the results, once
            for line in content.splitlines(keepends=True)[:-1]:
                if b'"end":true' not in line[:20]:
                    self.assertEqual(text.count(line), 1)
                    break

    def test_ctrl_c_says_how_to_go_on(self):
        process = subprocess.Popen([common.BINARY, "batch", "large.yaml", "-o", "a.jsonl"], cwd=self.place,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (self.place / "a.jsonl.batch" / "manifest.json").exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("the same command goes on", said)
        self.run_it("batch", "large.yaml", "-o", "b.jsonl")
        self.run_it("batch", "large.yaml", "-o", "a.jsonl")
        self.assertEqual(sha256(self.place / "a.jsonl"), sha256(self.place / "b.jsonl"))


class FullDisk(BatchTest):
    CASES = 10_000  # 8 MB of rows

    def setUp(self):
        super().setUp()
        self.disk = self.place / "disk"
        self.disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(self.disk)], capture_output=True,
                              check=False)
        if done.returncode != 0:
            self.skipTest("a small file system cannot be mounted here (needs root)")
        self.addCleanup(subprocess.run, ["umount", str(self.disk)], check=False)

    def resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.disk)], check=True)

    def test_exit_74_and_what_landed_stays(self):
        whole = self.whole()
        self.run_it("batch", "large.yaml", "-o", "disk/a.jsonl", code=74)
        self.assertIn("No space left on device", self.said)
        self.assertFalse((self.disk / "a.jsonl").exists())
        landed = sum(f.stat().st_size for f in (self.disk / "a.jsonl.batch").glob("shard-*"))
        self.assertGreater(landed, 2_000_000)
        self.resize("14m")  # enough for the rows, not for the results beside them
        self.run_it("batch", "large.yaml", "-o", "disk/a.jsonl", code=74)
        self.assertEqual([f.name for f in self.disk.iterdir()], ["a.jsonl.batch"])
        self.resize("64m")
        self.run_it("batch", "large.yaml", "-o", "disk/a.jsonl", "-o", "sqlite=a.db")
        self.assertEqual(sha256(self.disk / "a.jsonl"), whole)

    def test_databases_and_shards_too(self):
        self.resize("1m")
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "-o", "sqlite=disk/a.db", code=74)
        self.assertEqual(list(self.disk.iterdir()), [])
        self.run_it("batch", "plan", "large.yaml", "-o", "disk/out", "--shards", "1")
        self.run_it("batch", "run", "disk/out", "--shard", "0/1", code=74)
        self.assertEqual(self.run_it("batch", "status", "disk/out", "--missing"), "0\n")


class Questions(BatchTest):
    def test_a_failed_one_is_a_row(self):
        self.put("small.yaml", SMALL)
        self.run_it("batch", "small.yaml", "-o", "a.jsonl", "-o", "a.csv", "-o", "a.db")
        rows = [json.loads(line) for line in (self.place / "a.jsonl").read_text().splitlines()]
        self.assertEqual([row["case"] for row in rows], list(range(12)))
        self.assertEqual([row["status"] for row in rows], ["wrong", "ok"] * 6)
        self.assertIn("0", rows[0]["reason"])
        self.assertNotIn("time_s", rows[0])
        table = list(csv.DictReader((self.place / "a.csv").read_text().splitlines()))
        self.assertEqual([float(row["time_s"]) for row in table[1::2]], [row["time_s"] for row in rows[1::2]])
        with sqlite3.connect(self.place / "a.db") as database:
            found = database.execute("SELECT \"case\", time_s, in_hw, typeof(time_s) FROM roofline WHERE status = 'ok' "
                                     "ORDER BY 1").fetchall()
        self.assertEqual(found, [(r["case"], r["time_s"], r["in_hw"], "real") for r in rows if r["status"] == "ok"])
        self.run_it("batch", "small.yaml", "-o", "b.jsonl", "--strict", code=2)
        self.assertIn("without an answer", self.said)

    def test_answers_are_those_of_the_command(self):
        self.put("small.yaml", "command: train\narguments: ['{model}']\nflags: {hw: h100-sxm, top: 1}\n"
                               "axes: {model: [llama3-8b, llama3.1-405b], chips: [8, 64]}\n")
        self.run_it("batch", "small.yaml", "-o", "a.jsonl")
        rows = [json.loads(line) for line in (self.place / "a.jsonl").read_text().splitlines()]
        self.assertEqual([row["status"] for row in rows], ["ok", "ok", "infeasible", "ok"])
        for row in rows:
            words = row["question"].split()[1:]
            code = 3 if row["status"] == "infeasible" else 0
            out = self.run_it(*words, "-o", "row", "-o", "json=a.json", code=code)
            if row["status"] == "ok":
                alone = json.loads(out)
                self.assertEqual({key: row[key] for key in alone}, alone)
                plan = json.loads((self.place / "a.json").read_text())["best"]["plan"]
                self.assertEqual((row["step_time_s"], row["tp"], row["memory_bytes"]),
                                 (plan["step_time_s"], plan["layout"]["tp"], plan["memory_bytes"]["total"]))

    def test_examples_finish_and_rows_have_their_schema(self):
        for example in sorted((SOURCE / "configs" / "studies").glob("*.yaml")):
            if example.name.startswith("everything"):  # a night's work, which everything.py samples
                continue
            self.run_it("batch", example, "-o", "a.jsonl")
            rows = [json.loads(line) for line in (self.place / "a.jsonl").read_text().splitlines()]
            self.assertGreater(sum(row["status"] == "ok" for row in rows), 0.9 * len(rows), example)
            for row in rows:
                fits(row, "batch-row")

    def test_plans_have_their_schema(self):
        self.put("small.yaml", SMALL + "where: batch > 8\nrecords: all\n")
        plan = json.loads(self.run_it("batch", "plan", "small.yaml", "-o", "out", "--shards", "3", "--json"))
        fits(plan, "batch-plan")
        manifest = json.loads((self.place / "out" / "manifest.json").read_text())
        fits(manifest, "batch-manifest")
        self.assertEqual(plan["manifest_sha256"], manifest["hash"])
        self.run_it("batch", "run", "out", "--shard", "2")
        status = json.loads(self.run_it("batch", "status", "out", "--json"))
        fits(status, "batch-status")
        self.assertEqual(status["missing"], "0,1")

    def test_one_document_has_the_rows_of_the_lines(self):
        self.put("small.yaml", SMALL)
        lines = self.run_it("batch", "small.yaml").splitlines()
        document = json.loads(self.run_it("batch", "small.yaml", "--json", "-o", "all.json"))
        fits(document, "batch")
        self.assertEqual(document["rows"], [json.loads(line) for line in lines])
        self.assertEqual(document["question"], "scalecalc batch small.yaml")
        self.assertEqual(json.loads((self.place / "all.json").read_text()), document)

    def test_tables_show_what_was_asked_and_a_few_figures(self):
        self.put("small.yaml", SMALL)
        rows = [json.loads(line) for line in self.run_it("batch", "small.yaml").splitlines()]
        table = self.run_it("batch", "small.yaml", "-o", "table", "-o", "small.md")
        titles = next(line for line in table.splitlines() if "batch" in line and "time_s" in line)
        self.assertLess(max(map(len, table.splitlines())), 101)
        self.assertIn("status", table)
        markdown = [line for line in (self.place / "small.md").read_text().splitlines() if line.startswith("|")]
        self.assertEqual(len(markdown), len(rows) + 2)
        for word in ("hw", "d"):
            self.assertIn(word, titles.split())
        chosen = self.run_it("batch", "small.yaml", "-o", "table", "--columns", "flops,memory_time_s")
        self.assertIn("memory_time_s", chosen)
        self.assertNotIn("attained", chosen)
        self.run_it("batch", "small.yaml", "-o", "table", "--columns", "flosp", code=2)
        self.assertIn("did you mean 'flops'", self.said)

    def test_every_row_is_what_was_expected(self):
        self.put("small.yaml", SMALL)
        self.put("expected.yaml", "status: ok\ntime_s: {most: 1}\n")
        self.run_it("batch", "small.yaml", "-o", "a.jsonl", "--expect", "expected.yaml", code=1)
        self.assertIn("expected.yaml:1: status = ok is not so in", self.said)
        self.assertIn("time_s = nothing", self.said)  # a row without an answer
        self.put("expected.yaml", "tiem_s: 1\n")
        self.run_it("batch", "small.yaml", "-o", "a.jsonl", "--expect", "expected.yaml", code=2)
        self.assertIn("expected.yaml:1:1", self.said)

    def test_too_large_a_study_is_refused(self):
        self.put("huge.yaml", "command: roofline\narguments: [matmul, '{a}x{b}x{c}']\nflags: {hw: tpu-v5e}\n"
                              "axes: {a: 1..10000+1, b: 1..10000+1, c: 1..10000+1}\n")
        self.run_it("batch", "huge.yaml", "-o", "a.jsonl", code=2)
        self.assertIn("1,000,000,000,000 points", self.said)
        self.assertIn("--yes", self.said)
        self.assertFalse((self.place / "a.jsonl.batch").exists())

    def test_memory_does_not_grow(self):
        def peak(study):
            done = subprocess.Popen([common.BINARY, "batch", study, "-o", "m.jsonl"], cwd=self.place,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(done.pid, 0)
            done.returncode = status
            self.assertEqual(status, 0)
            return usage.ru_maxrss

        self.put("large.yaml", study(10_000))
        self.put("tenth.yaml", study(1_000))
        self.assertLess(peak("large.yaml") - peak("tenth.yaml"), 6_000)  # KiB; the rows are 8 MB

    def test_progress_is_for_terminals(self):
        self.run_it("batch", "large.yaml", "-o", "a.jsonl")
        self.assertNotIn("\r", self.said)
        self.assertEqual(self.said, "2,500 rows: 2,500 ok\n")
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "--quiet")
        self.assertEqual(self.said, "")
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.place)
            os.execv(common.BINARY, [common.BINARY, "batch", "large.yaml", "-o", "a.jsonl"])
        seen = b""
        while True:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.waitpid(pid, 0)
        os.close(fd)
        self.assertRegex(seen.decode(), r"of 2,500 questions \(\d+ %\), .* a second, .* left")


class Checks(BatchTest):
    def test_a_misspelt_name_is_found_before_the_work(self):
        self.put("small.yaml", "command: train\narguments: [llama3-8b]\nflags: {hw: h100-sxm}\naxes: {chips: [8, 64]}\n")
        self.run_it("batch", "small.yaml", "-o", "never.jsonl", "--fail-if", "mfuu < 0.5", code=2)
        self.assertIn("did you mean 'mfu'", self.said)
        self.assertFalse((self.place / "never.jsonl").exists())
        self.run_it("batch", "small.yaml", "-o", "a.jsonl", "--fail-if", "in_chips = 64 AND status = 'ok' AND dp = 0")

    def test_fail_if_and_diff(self):
        self.put("small.yaml", SMALL.replace("[0, 4096]", "[2048, 4096]"))
        self.run_it("batch", "small.yaml", "-o", "old.jsonl", "--fail-if", "fraction_of_peak > 1.01")
        self.run_it("batch", "small.yaml", "-o", "new.jsonl", "--fail-if", "bound_by = 'memory'", code=1)
        self.assertIn("holds for", self.said)
        self.run_it("batch", "diff", "old.jsonl", "new.jsonl")
        self.put("small.yaml", SMALL.replace("[0, 4096]", "[2048, 4096]") + "flags: {set: [hw.hbm.bandwidth=600GB/s]}\n")
        self.run_it("batch", "small.yaml", "-o", "new.jsonl")
        shown = self.run_it("batch", "diff", "old.jsonl", "new.jsonl", "--columns", "memory_time_s", "--tolerance",
                            "2%", code=1)
        self.assertIn("hw tpu-v5e, batch 8, d 2048", shown)
        self.run_it("batch", "diff", "old.jsonl", "new.jsonl", "--columns", "compute_time_s")
        found = json.loads(self.run_it("batch", "diff", "old.jsonl", "new.jsonl", "--json", code=1))
        fits(found, "batch-diff")


class OtherPrograms(BatchTest):
    def setUp(self):
        super().setUp()
        self.put("small.yaml", SMALL)
        self.run_it("batch", "small.yaml", "-o", "a.jsonl", "-o", "a.csv", "-o", "a.db")

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        lines = pandas.read_json(self.place / "a.jsonl", lines=True)
        table = pandas.read_csv(self.place / "a.csv")
        with sqlite3.connect(self.place / "a.db") as database:
            rows = pandas.read_sql("SELECT * FROM roofline", database)
        for frame in (lines, table, rows):
            self.assertEqual(len(frame), 12)
            self.assertEqual(frame["time_s"].dtype, "float64")
            self.assertAlmostEqual(frame["time_s"].min() / lines["time_s"].min(), 1)  # pandas rounds what it reads
            self.assertEqual(list(frame.groupby("in_hw").size()), [6, 6])

    def test_duckdb(self):
        if shutil.which("duckdb") is None:
            self.skipTest("duckdb is not installed")
        out = subprocess.run(["duckdb", "-csv", "-noheader", "-c",
                              "SELECT count(*), count(time_s) FROM 'a.jsonl'"], cwd=self.place, capture_output=True,
                             text=True, check=True).stdout
        self.assertEqual(out.strip(), "12,6")


if __name__ == "__main__":
    common.main(sys.argv[1])
