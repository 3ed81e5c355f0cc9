"""What an earlier release wrote is read: results directories and rows (tests/data/released/VERSION, never written again),
and plans (tests/data/launch/plan.json). What a newer one wrote is refused, by its name. Usage: released_test.py BINARY"""
import json
import shutil
import sqlite3
import subprocess
import sys
import unittest

import common
from common import BatchTest, SOURCE

RELEASES = sorted((SOURCE / "tests/data/released").iterdir())


class Released(BatchTest):
    def each(self):
        self.assertTrue(RELEASES)
        for release in RELEASES:
            with self.subTest(release.name):
                shutil.rmtree(self.place / "results", ignore_errors=True)
                shutil.copytree(release / "results", self.place / "results")
                yield release, (release / "merged.jsonl").read_text()

    def test_a_directory_is_whole_and_merged_to_the_same_bytes(self):
        for release, merged in self.each():
            rows = len(merged.splitlines())
            status = json.loads(self.run_it("batch", "status", "results", "--json"))
            self.assertEqual((status["rows"], status["shards_done"], status["shards_missing"]), (rows, 2, 0))
            self.run_it("batch", "merge", "results", "-o", "again.jsonl")
            self.assertEqual((self.place / "again.jsonl").read_text(), merged)
            self.run_it("batch", "merge", "results", "-o", "sqlite=again.db")
            with sqlite3.connect(self.place / "again.db") as database:
                times = [row[0] for row in database.execute('SELECT time_s FROM roofline ORDER BY "case"')]
            self.assertEqual(times, [json.loads(line)["time_s"] for line in merged.splitlines()])

    def test_a_directory_is_gone_on_with_or_the_release_that_planned_it_is_named(self):
        for release, merged in self.each():
            (self.place / "results/shard-00001-of-00002.jsonl").unlink()
            done = subprocess.run([common.BINARY, "batch", "run", "results", "--shard", "1/2"], cwd=self.place,
                                  capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 0:
                self.run_it("batch", "merge", "results", "-o", "again.jsonl")
                self.assertEqual((self.place / "again.jsonl").read_text(), merged)
            else:  # with other models and hardware the rest would be of another study
                self.assertEqual(done.returncode, 2)
                self.assertIn("the study was planned", done.stderr)

    def test_rows_are_compared_and_newer_ones_refused(self):
        for release, merged in self.each():
            self.put("old.jsonl", merged)
            self.run_it("batch", "diff", "old.jsonl", "old.jsonl")
            self.put("newer.jsonl", merged.replace("scalecalc/batch-row/1", "scalecalc/batch-row/2"))
            self.run_it("batch", "diff", "old.jsonl", "newer.jsonl", code=2)
            self.assertIn("this is scalecalc/batch-row/2, and this release reads scalecalc/batch-row/1", self.said)

    def test_plans_are_exported_and_newer_ones_refused(self):
        plan = (SOURCE / "tests/data/launch/plan.json").read_text()
        self.put("plan.json", plan)
        self.assertIn("accelerate", self.run_it("export", "plan.json", "--to", "accelerate"))
        self.put("newer.json", plan.replace("scalecalc/train/1", "scalecalc/train/2"))
        self.run_it("export", "newer.json", "--to", "accelerate", code=2)
        self.assertIn("this is scalecalc/train/2, and this release reads scalecalc/train/1", self.said)


if __name__ == "__main__":
    common.main(sys.argv[1])
