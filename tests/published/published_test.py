"""Layouts that were really run must be in the search space: legal, within memory, answered as they were pinned, and not
better than what the search finds by itself. How close the times come is docs/case-studies.md. Usage: published_test.py
BINARY SOURCE_DIR"""
import sys
import unittest

import runs

BINARY, SOURCE = sys.argv[1], sys.argv[2]
# Plans within 1 % of the fastest are a tie, which goes to the one with least memory.
TIE = 1.01


class PublishedRuns(unittest.TestCase):
    def test_names_are_unique(self):
        names = [run["id"] for run in runs.load(SOURCE)]
        self.assertEqual(len(names), len(set(names)))

    def test_the_space_contains_them(self):
        for run in runs.load(SOURCE):
            with self.subTest(run["id"]):
                status, document = runs.answer(BINARY, runs.as_run(run), 1)
                self.assertEqual(status, 0, document)
                plan = document["plans"][0]
                self.assertEqual(runs.pinned(run, plan["layout"]), run["fix"])
                self.assertEqual((plan["chips"], plan["idle_chips"]), (run["chips"], 0))
                self.assertEqual(plan["batch_seqs"], document["query"]["batch_seqs"])
                self.assertLessEqual(plan["memory_bytes"]["total"], plan["memory_bytes"]["capacity"])
                status, free = runs.answer(BINARY, runs.question(run), 1)
                self.assertEqual(status, 0, free)
                self.assertLessEqual(free["plans"][0]["step_time_s"], plan["step_time_s"] * TIE)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
