"""Names and files meant to break: job scripts run on them by each engine (or, where it is not installed, by what its
manual says it does with a text), results that would replace a file of the question, two processes at one output, what
files put on terminals and into spreadsheets. Usage: hostile_test.py BINARY"""
import ast
import csv
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import string
import subprocess
import sys
import time
import unittest

import common
from common import BatchTest, SOURCE, sha256

SMALL = """command: roofline
arguments: [matmul, "{batch}x4096x8192"]
axes:
  hw: [tpu-v5e]
  batch: [8, 64]
"""
SHARDS = 2
NAMES = ["it's a \"b\"", "$(touch X)`touch X`", "a;touch X;#", "new\nline\ttab", "{=system('touch X')=}{}{1}{/}",
         "%j%a&b|c*~?[a]", "back\\slash\\n", "-x", "$HOME$$(HOME)", "\u00fcn\u00ef: {i}\u2028\u0085x: y"]


def study_of_many():
    return "command: roofline\narguments: ['matmul', '{batch}x4096x8192']\naxes: {hw: [tpu-v5e], batch: 8..400+8}\n"


def expanded(text, variables):
    """What Kubernetes makes of a word of a command: $(NAME) is a variable if there is one, $$ a dollar sign."""
    return re.sub(r"\$\$|\$\(([^)]*)\)", lambda m: "$" if m[0] == "$$" else variables.get(m[1], m[0]), text)


class Formatter(string.Formatter):
    """Snakemake's: {x:q} is quoted for a shell."""

    def format_field(self, value, spec):
        return shlex.quote(str(value)) if spec == "q" else super().format_field(value, spec)


class Params:
    def __init__(self, **members):
        self.__dict__.update(members)


SBATCH = r"""#!/usr/bin/python3
import os, re, subprocess, sys
words = dict(w.split("=", 1) for w in sys.argv[1:] if w.startswith("--") and "=" in w)
wrap = sys.argv[sys.argv.index("--wrap") + 1]
log = words["--output"]
if log != "/dev/null":
    assert "\\" not in log
    log = log.replace("%%", "\0").replace("%a", "0")
    assert "%" not in log, log
    assert os.path.isdir(os.path.dirname(log.replace("\0", "%"))), log
first, last = map(int, re.match(r"(\d+)-(\d+)%", words["--array"]).groups()) if "--array" in words else (0, 0)
for index in range(first, last + 1):
    subprocess.run(["sh", "-c", "#!/bin/sh\n\n" + wrap + "\n"], check=True,
                   env={**os.environ, "SLURM_ARRAY_TASK_ID": str(index)})
print(7)
"""


class Scripts(BatchTest):
    CASES = 2

    def setUp(self):
        super().setUp()
        self.put("small.yaml", SMALL)
        self.expected = self.whole("small.yaml")
        path = self.environment()["PATH"].split(":")[0]
        with open(f"{path}/sbatch", "w", encoding="utf-8") as file:
            file.write(SBATCH)
        os.chmod(f"{path}/sbatch", 0o755)

    def each_name(self, engine, run):
        for name in NAMES:
            with self.subTest(name):
                self.run_it("batch", "plan", "-o", f"./{name}", "--shards", SHARDS, "--", "small.yaml")
                run(self.run_it("batch", "script", "--engine", engine, "--", name), name)
                self.assertEqual(sha256(self.place / name / "results.jsonl"), self.expected)
                self.assertFalse((self.place / "X").exists(), "a name was run")
                shutil.rmtree(self.place / name)

    def shell(self, *words, **variables):
        done = subprocess.run(words, cwd=self.place, env=self.environment(**{"HOME": str(self.place), **variables}),
                              capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_slurm(self):
        self.each_name("slurm", lambda text, _: self.shell("bash", str(self.put("job", text))))

    @unittest.skipIf(shutil.which("parallel") is None, "parallel: not installed")
    def test_parallel(self):
        self.each_name("parallel", lambda text, _: self.shell("bash", str(self.put("job", text))))

    def test_kubernetes(self):
        import yaml

        def run(text, name):
            for line in text.splitlines()[:2]:
                self.assertTrue(line.startswith("#"))
            command = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]["command"]
            for index in range(SHARDS):
                variables = {"JOB_COMPLETION_INDEX": str(index), "HOME": "/elsewhere"}
                self.shell(*(expanded(word, variables) for word in command), **variables)
            self.run_it("batch", "merge", "-o", f"jsonl=./{name}/results.jsonl", "--", name)

        self.each_name("kubernetes", run)

    def test_snakemake(self):
        def run(text, name):
            directory = ast.literal_eval(re.search(r'^DIR = (.*)$', text, re.M)[1])
            outputs = [ast.literal_eval(o) for o in re.findall(r'^    output: (.*)$', text, re.M)]
            merge, shard = [ast.literal_eval(s) for s in re.findall(r'^    shell: (.*)$', text, re.M)]
            self.assertEqual(outputs[0].format(), f"{directory}/results.jsonl")
            for index in range(SHARDS):
                file = f"shard-{index:05}-of-{SHARDS:05}.jsonl"
                self.assertEqual(outputs[1].format(i=f"{index:05}"), f"{directory}/{file}")
                self.shell("bash", "-c", Formatter().format(shard, params=Params(dir=directory, index=index), threads=1))
                self.assertTrue((self.place / name / file).exists())
            self.shell("bash", "-c", Formatter().format(merge, params=Params(dir=directory), output=outputs[0].format()))

        self.each_name("snakemake", run)


class OutputsAndInputs(BatchTest):
    def refused(self, *words, path):
        before = sha256(self.place / path)
        self.run_it(*words, code=2)
        self.assertIn("an output would replace this file", self.said)
        self.assertEqual(sha256(self.place / path), before)

    def test_no_output_replaces_a_file_of_the_question(self):
        self.put("study.yaml", SMALL)
        shutil.copy(SOURCE / "configs" / "models" / "llama3-8b.yaml", self.place / "m.yaml")
        shutil.copy(SOURCE / "tests" / "data" / "hf" / "llama-3.1-8b.json", self.place / "config.json")
        (self.place / "link").symlink_to("m.yaml")
        self.put("e.yaml", "status: ok\n")
        train = ["train", "m.yaml", "--hw", "h100-sxm", "--chips", "8"]
        self.refused("batch", "study.yaml", "-o", "csv=study.yaml", path="study.yaml")
        self.refused("batch", "study.yaml", "-o", "sqlite=./study.yaml", path="study.yaml")
        self.refused(*train, "-o", "json=m.yaml", path="m.yaml")
        self.refused(*train, "-o", "json=link", path="m.yaml")
        self.refused("model", "config.json", "-o", "csv=config.json", path="config.json")
        self.refused("model", "design", "--hw", "h100-sxm", "--chips", "8", "--deadline", "30d", "--law", "m.yaml",
                     "--write", "m.yaml", path="m.yaml")
        self.put("of-files.yaml", "command: model\narguments: ['{m}']\naxes: {m: [m.yaml, llama3-8b]}\n")
        self.refused("batch", "of-files.yaml", "-o", "csv=m.yaml", path="m.yaml")
        self.run_it("batch", "study.yaml", "-o", "a.jsonl")
        self.refused("batch", "diff", "a.jsonl", "a.jsonl", "-o", "json=a.jsonl", path="a.jsonl")
        self.refused("batch", "study.yaml", "-o", "jsonl=e.yaml", "--expect", "e.yaml", path="e.yaml")
        self.run_it("batch", "plan", "study.yaml", "-o", "out", "--shards", "1")
        self.run_it("batch", "run", "out")
        shard = "out/shard-00000-of-00001.jsonl"
        self.refused("batch", "merge", "out", "-o", f"jsonl={shard}", path=shard)
        self.refused("batch", "merge", "out", "-o", "json=out/manifest.json", path="out/manifest.json")

    def test_two_outputs_have_two_files(self):
        self.put("study.yaml", SMALL)
        self.put("old.csv", "before")
        (self.place / "link.csv").symlink_to("old.csv")
        (self.place / "again").symlink_to(".")
        train = ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8"]
        design = ["model", "design", "--hw", "h100-sxm", "--chips", "8", "--deadline", "30d"]
        export = [*train, "--export", "megatron:new"]
        for words in (train, design, export, ["batch", "study.yaml"], ["roofline", "matmul", "8x8x8", "--hw", "h100"],
                      ["serve", "llama3-8b", "--hw", "h100", "--chips", "1", "--export", "vllm:new"],
                      ["compare", "llama3-8b", "--hw", "h100-sxm,h200", "--chips", "8"]):
            pairs = [("new", "./new"), ("new", "again/new"), ("old.csv", "link.csv"), ("old.csv", "./again/old.csv")]
            if words is design:
                self.run_it(*words, "--write", "new.yaml", "-o", "csv=./new.yaml", code=2)
                self.assertIn("two outputs", self.said)
            if "--export" in words:
                self.run_it(*words, "-o", "csv=again/new", code=2)
                self.assertIn("two outputs", self.said)
                continue
            for one, other in pairs:
                self.run_it(*words, "-o", f"csv={one}", "-o", f"json={other}", code=2)
                self.assertIn("two outputs", self.said)
        self.assertEqual((self.place / "old.csv").read_text(), "before")
        self.assertFalse((self.place / "new").exists())

    def test_shards_beyond_the_open_files_are_merged(self):
        self.put("study.yaml", study_of_many())
        self.run_it("batch", "study.yaml", "-o", "whole.jsonl")
        self.run_it("batch", "plan", "study.yaml", "-o", "out", "--shards", "100")
        for shard in range(100):
            self.run_it("batch", "run", "out", "--shard", f"{shard}/100")
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        self.run_it("batch", "merge", "out", "-o", "jsonl=merged.jsonl", preexec_fn=few)
        self.assertEqual(sha256(self.place / "merged.jsonl"), sha256(self.place / "whole.jsonl"))

    def test_a_small_stack_is_no_end(self):
        small = lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, 128 << 10))
        for words in (["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64"], ["validate"],
                      ["model", SOURCE / "tests" / "data" / "hf" / "deepseek-v3.json"]):
            self.assertEqual(self.run_it(*words), self.run_it(*words, preexec_fn=small))

    def test_a_pipe_in_a_config_directory_is_not_waited_for(self):
        for kind in ("hardware", "models"):
            (self.place / "own" / kind).mkdir(parents=True)
            os.mkfifo(self.place / "own" / kind / "pipe.yaml")
        self.run_it("roofline", "matmul", "8x8x8", "--hw", "h100", "--config-dir", "own")
        self.run_it("train", "pipe", "--hw", "pipe", "--chips", "8", "--config-dir", "own", code=2)
        self.assertIn("unknown", self.said)

    def test_a_study_writes_nothing_but_its_results(self):
        self.put("study.yaml", "command: model\narguments: [design]\nflags: {hw: h100-sxm, deadline: 30d, chips: '{chips}',"
                               " write: 'w-{chips}.yaml'}\naxes: {chips: [64, 128]}\n")
        self.run_it("batch", "study.yaml", "-o", "a.csv", code=2)
        self.assertIn("--write writes a file", self.said)
        self.assertEqual(sorted(p.name for p in self.place.iterdir()), ["large.yaml", "study.yaml"])

    def test_two_processes_at_one_output(self):
        whole = self.whole()
        first = subprocess.Popen([common.BINARY, "batch", "large.yaml", "-o", "a.jsonl"], cwd=self.place,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (self.place / "a.jsonl.batch" / "manifest.json").exists():
            self.assertIsNone(first.poll())
            time.sleep(0.002)
        first.send_signal(signal.SIGSTOP)
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", code=74)
        self.assertIn("another scalecalc is at work on these results", self.said)
        self.run_it("batch", "large.yaml", "-o", "a.jsonl", "--restart", code=74)
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(timeout=120), 0)
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        self.assertFalse((self.place / "a.jsonl.batch").exists())

    def test_many_processes_at_one_output(self):
        whole = self.whole()
        all_of_them = [subprocess.Popen([common.BINARY, "batch", "large.yaml", "-o", "a.jsonl"], cwd=self.place,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(8)]
        codes = [process.wait(timeout=240) for process in all_of_them]
        self.assertLessEqual(set(codes), {0, 74}, codes)
        self.assertIn(0, codes)
        self.assertEqual(sha256(self.place / "a.jsonl"), whole)
        self.assertFalse((self.place / "a.jsonl.batch").exists())


class TextsOfFiles(BatchTest):
    CASES = 2
    EVIL = "\\e[31mred\\x07\\u009b2J\\u202e"

    def setUp(self):
        super().setUp()
        text = (SOURCE / "configs" / "models" / "llama3-8b.yaml").read_text()
        self.put("m.yaml", re.sub(r"^title: .*$", lambda _: f'title: "{self.EVIL}"', text, flags=re.M))
        self.put("-m.yaml", re.sub(r"^title: .*$", "title: '=HYPERLINK(\"http://x\")'", text, flags=re.M))

    def assert_clean(self, text):
        self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), ascii(text))

    def test_controls_reach_no_terminal_and_no_table(self):
        asked = ["m.yaml", "--hw", "h100-sxm", "--chips", "8"]
        for words in (["train", *asked], ["model", "m.yaml"], ["compare", "m.yaml", "--hw", "h100-sxm,tpu-v5p", "--chips", "8"]):
            for form in ["table", "csv", "markdown", "json", "jsonl", "row"] + ["plot"] * (words[0] == "compare"):
                self.assert_clean(self.run_it(*words, "-o", form))
                self.assert_clean(self.said)
            self.assertNotIn("\u202e", self.run_it(*words) + self.run_it(*words, "-o", "csv"))
        # JSON escapes them: its texts are those of the file.
        query = json.loads(self.run_it("train", *asked, "--json"))["query"]
        self.assertEqual(query["model_title"], "\x1b[31mred\x07\x9b2J\u202e")
        self.run_it("train", "\x1b[31m.yaml", "--hw", "h100-sxm", "--chips", "8", code=2)
        self.assert_clean(self.said)

    def test_formulas_and_dashes(self):
        self.put("study.yaml", "command: train\narguments: ['{model}']\nflags: {hw: h100-sxm, chips: 8}\n"
                               "axes: {model: [-m.yaml, llama3-8b]}\n")
        rows = [json.loads(line) for line in self.run_it("batch", "study.yaml", "-o", "a.csv", "-o", "jsonl").splitlines()]
        for row in csv.reader(io.StringIO((self.place / "a.csv").read_text())):
            for cell in row:
                if cell[:1] in ("=", "+", "-", "@"):
                    float(cell)  # a number, or it would be a formula
        self.assertEqual(rows[0]["in_model"], "-m.yaml")
        for row in rows:
            again = json.loads(self.run_it(*shlex.split(row["question"])[1:-2 if " -- " in row["question"] else None],
                                           "-o", "row", *(["--", "-m.yaml"] if " -- " in row["question"] else [])))
            self.assertEqual(again["question"], row["question"])
            self.assertEqual(again["step_time_s"], row["step_time_s"])


if __name__ == "__main__":
    common.main(sys.argv[1])
