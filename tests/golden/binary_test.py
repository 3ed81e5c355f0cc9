"""The real binary under real streams: full devices, closed pipes, terminals, other directories; and its JSON against
the published schemas. Usage: binary_test.py BINARY SOURCE_DIR"""
import csv
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree

try:
    import jsonschema
except ImportError:
    jsonschema = None

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SOURCE = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2])
QUESTION = ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64"]

SHARDED = ["matmul", "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]", "--hw", "tpu-v5e", "--mesh", "X=4,Y=4", "--dims",
           "I=1024,J=8192,K=8192"]


def run(*args, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([BINARY, *args], stderr=subprocess.PIPE, timeout=120, check=False, **kwargs)


def run_in_terminal(width, *args, **variables):
    """What a terminal of that width shows, as lines."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        os.execve(BINARY, [BINARY, *args], {"TERM": "xterm", "LANG": "C.UTF-8", **variables})
    chunks = []
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    text = re.sub(r"[^\n]*\r\x1b\[K", "", text)  # progress, and its end
    return text.splitlines(), os.waitstatus_to_exitcode(status)


PICTURES = [
    ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "16..64*2", "--tokens", "1T", "--pareto"],
    ["serve", "llama3-70b", "--hw", "h100-sxm,tpu-v6e", "--chips", "8", "--slo-tpot", "50ms"],
    ["roofline", "matmul", "8192x28672", "--batch", "8..2048*4", "--hw", "book/tpu-v5e"],
    ["roofline", "load", "1G", "--hw", "h100-sxm"],
    ["hw", "h100-sxm", "tpu-v5p"],
    ["collective", "all-reduce", "--hw", "h100-sxm", "--group", "2,8", "--bytes", "1kB..1GB*10"],
    ["scaling-law", "llama3-8b"],
    ["sensitivity", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--fixed"],
    ["compare", "llama3-8b", "--hw", "h100-sxm:64,tpu-v5p:64,a100-80g:64"],
    ["compare", "llama3-8b", "--serve", "--hw", "h100-sxm,h200", "--chips", "4"],
    ["distill", "llama3.2-1b", "--teacher", "llama3.1-8b", "--hw", "h100-sxm", "--chips", "32", "--tokens", "10B"],
    ["rl", "llama3.2-1b", "--hw", "h100-sxm", "--chips", "16", "--prompt", "256", "--generate", "128..1024", "--prompts", "32",
     "--rollouts", "8"],
    ["trace", "gpt3-175b", "--hw", "a100-80g", "--chips", "1024", "--fix", "tp=8,pp=8", "--batch-seqs", "192"],
    ["validate", "train", "--only", "chip=h200,mi325x"],
    ["validate", "serve", "--only", "chip=h200"],
    ["calibrate", "train", "--hw", "mi355x", "--stack", "primus"],
]


@functools.cache
def validator(name):
    file = SOURCE.resolve() / "docs" / "schema" / f"{name}.schema.json"
    schema = json.loads(file.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    beside = jsonschema.RefResolver(base_uri=file.as_uri(), referrer=schema)  # schemas refer to each other
    return jsonschema.Draft7Validator(schema, resolver=beside)


def schema_problems(name, document):
    if jsonschema is None:
        return ["python3-jsonschema is not installed"]
    return [f"{list(e.path)}: {e.message}" for e in validator(name).iter_errors(document)]


class Streams(unittest.TestCase):
    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout.decode(), r"^scalecalc \d+\.\d+\.\d+\ncommit .+\ncatalog: .+\n$")

    def test_bash_completes(self):
        # As bash would after these words: the script it was given is run, not read.
        ask = ('eval "$(scalecalc completion bash)"; COMP_WORDS=(scalecalc {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
               '_scalecalc; echo "${{COMPREPLY[@]}}"')
        place = {"PATH": f"{pathlib.Path(BINARY).resolve().parent}:{os.environ['PATH']}"}
        for words, expected in (("train llama3-70", "llama3-70b"), ("serve llama3-70b --hw tpu-v5p", "tpu-v5p"),
                                ("tr", "train trace")):
            result = subprocess.run(["bash", "-c", ask.format(words)], capture_output=True, text=True, env=place, check=False)
            self.assertEqual((result.stdout.strip(), result.stderr), (expected, ""), words)

    def test_man_pages_are_read_without_a_warning(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        for page in ("", "train", "batch"):
            text = run("man", *page.split()).stdout
            result = subprocess.run(["man", "--warnings=all", "-l", "-"], input=text, capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, b""), page)

    def test_full_device(self):
        for words in (QUESTION, QUESTION + ["--json"], ["--help"]):
            with open("/dev/full", "wb") as full:
                result = run(*words, stdout=full)
            self.assertEqual(result.returncode, 74, words)
            self.assertEqual(result.stderr.decode().splitlines()[-1],
                             "error: cannot write to standard output: No space left on device")

    def test_closed_standard_output(self):
        result = subprocess.run(["sh", "-c", f'"{BINARY}" --version >&-'], stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 74)

    def test_full_device_as_file(self):
        result = run(*QUESTION, "-o", "json=/dev/full")
        self.assertEqual(result.returncode, 74)
        self.assertEqual(result.stdout, b"")

    def test_reader_goes_away(self):
        command = f'"{BINARY}" {" ".join(QUESTION)} --variants --top 400 -o csv --quiet | head -n 1'
        for prefix in ("", "trap '' PIPE; "):
            result = subprocess.run(["bash", "-c", prefix + command], capture_output=True, timeout=120, check=False)
            self.assertEqual(result.stderr, b"")
            self.assertTrue(result.stdout.startswith(b"rank,chips,"))

    def test_another_directory(self):
        with tempfile.TemporaryDirectory() as place:
            result = run(*QUESTION, "-o", "json=plans.json", "-o", "csv", cwd=place, env={})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.listdir(place), ["plans.json"])
            document = json.loads((pathlib.Path(place) / "plans.json").read_text())
            self.assertEqual(len(document["plans"]) + 1, len(result.stdout.splitlines()))

    def test_no_files_are_left_by_a_wrong_question(self):
        with tempfile.TemporaryDirectory() as place:
            result = run("train", "nonesuch", "--hw", "h100-sxm", "--chips", "8", "-o", "json=plans.json", cwd=place)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(os.listdir(place), [])

    def test_model_from_standard_input(self):
        model = (SOURCE / "configs" / "models" / "llama3-8b.yaml").read_bytes()
        result = run("train", "-", "--hw", "h100-sxm", "--chips", "64", "--json", input=model)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["query"]["model"], "llama3-8b")


class Terminals(unittest.TestCase):
    def test_no_line_is_wider_than_the_terminal(self):
        short = ["train", "llama3-70b", "--hw", "h100-sxm", "--chips", "4"]
        experts = ["train", "mixtral-8x7b", "--hw", "tpu-v5p", "--chips", "256", "--fix", "tp=2"]
        curve = ["roofline", "matmul", "8192x28672", "--batch", "8..8192", "--hw", "tpu-v5e", "--chips", "4", "--split",
                 "output", "--over", "ici", "--explain"]
        measured = ["roofline", "matmul", "8x100x300", "pad=128", "--hw", "tpu-v5e", "--measured", "1ms,2ms"]
        tree = ["collective", "all-reduce", "--hw", "h100-sxm", "--group", "1024", "--bytes", "1GB", "--measured", "9ms",
                "--explain"]
        rings = ["collective", "all-to-all", "--hw", "tpu-v5e", "--topology", "16x16", "--bytes", "1KiB..1GiB*16"]
        rules = ["bounds", "llama3-70b", "--hw", "book/tpu-v5p", "--pods", "2", "--explain"]
        layout = ["bounds", "deepseek-v3", "--hw", "h800", "--chips", "2048", "--fix", "tp=2,ep=32,pp=16,ga=30"]
        serving = ["bounds", "mixtral-8x7b", "--hw", "h100-sxm", "--for", "serving", "--batch", "1..64", "--context",
                   "4096", "--generate", "256", "--explain"]
        stages = ["trace", *QUESTION[1:], "--fix", "pp=4"]
        depends = ["sensitivity", *QUESTION[1:], "--fixed", "--explain", "--set", "hw.hbm.bandwidth=1TB/s..4TB/s*2"]
        apart = ["model", "deepseek-v3", "--against", "llama3-70b", "--explain"]
        scaling = ["train", "llama3-8b", "--hw", "tpu-v5p", "--chips", "64..512", "--pareto"]
        laws = ["scaling-law", "llama3-8b", "--inference-tokens", "10T", "--hw", "h100-sxm", "--mfu", "40%", "--explain"]
        design = ["model", "design", "--hw", "h100-sxm", "--chips", "8", "--deadline", "10d", "--experts", "8,2"]
        for width in (60, 80, 100):
            for words in (QUESTION, scaling, QUESTION + ["--explain"], short, experts, curve, measured, tree, rings, SHARDED,
                          apart, laws, design, rules, layout, serving, ["model", "jamba-v0.1"], ["model", "list"], stages,
                          ["hw", "list"], ["hw", "h100-sxm", "v100", "tpu-v5p"], ["hw", "b200", "--explain"], depends):
                lines, code = run_in_terminal(width, *words, NO_COLOR="1")
                self.assertIn(code, (0, 3))
                # A command to copy is one line, however long.
                wide = [line for line in lines if len(line) > width and not line.startswith("  scalecalc ")]
                self.assertEqual(wide, [], f"{width} columns: {words}")
                self.assertFalse(any("\x1b" in line for line in lines))

    def test_no_picture_is_wider_than_the_terminal(self):
        for words in PICTURES:
            for width in (40, 60, 100):
                lines, status = run_in_terminal(width, *words, "--plot", "--quiet", NO_COLOR="1")
                self.assertEqual(status, 0, words)
                self.assertLessEqual(max(map(len, lines)), width, words)

    def test_colour(self):
        coloured, _ = run_in_terminal(100, *QUESTION)
        self.assertTrue(any("\x1b[32m" in line for line in coloured))
        plain, _ = run_in_terminal(100, *QUESTION, TERM="dumb")
        self.assertFalse(any("\x1b" in line for line in plain))
        forced = run(*QUESTION, "--color", "always")
        self.assertIn(b"\x1b[", forced.stdout)
        self.assertNotIn(b"\x1b", run(*QUESTION).stdout)

    def test_unicode_only_where_the_locale_has_it(self):
        lines, _ = run_in_terminal(100, *QUESTION, NO_COLOR="1")
        self.assertTrue(any("\u2500" in line for line in lines))
        lines, _ = run_in_terminal(100, *QUESTION, NO_COLOR="1", LANG="C")
        self.assertTrue(all(line.isascii() for line in lines))


def crossing(events):
    """Slices of one track that neither follow nor contain each other."""
    tracks, out = {}, []
    for event in events:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            span = (start, -round(event["dur"] * 1000), event["name"])
            tracks.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in tracks.values():
        open_until = []
        for start, length, name in sorted(spans):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            if open_until and start - length > open_until[-1]:
                out.append(name)
            open_until.append(start - length)
    return out


class Pictures(unittest.TestCase):
    SVG = "{http://www.w3.org/2000/svg}"

    def test_well_formed_with_texts_inside_the_page(self):
        for words in PICTURES:
            result = run(*words, "-o", "svg")
            self.assertEqual(result.returncode, 0, result.stderr)
            root = xml.etree.ElementTree.fromstring(result.stdout)
            self.assertEqual(root.tag, self.SVG + "svg")
            left, top, width, height = map(float, root.get("viewBox").split())
            self.assertEqual((left, top), (0, 0))
            texts = list(root.iter(self.SVG + "text"))
            self.assertGreater(len(texts), 1)
            for text in texts:
                self.assertTrue("".join(text.itertext()).strip(), words)
                self.assertTrue(0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height, words)

    def test_the_title_is_that_of_the_answer(self):
        words = PICTURES[2]
        root = xml.etree.ElementTree.fromstring(run(*words, "-o", "svg").stdout)
        title = root.find(self.SVG + "title").text
        self.assertTrue(run(*words).stdout.decode().replace("\n", " ").startswith(title))

    def test_appears_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.svg")
            self.assertEqual(run(*PICTURES[4], "-o", f"svg={path}").returncode, 0)
            xml.etree.ElementTree.parse(path)
            self.assertEqual(os.listdir(directory), ["a.svg"])
            os.remove(path)
            self.assertEqual(run(*SHARDED, "-o", f"svg={path}").returncode, 2)
            self.assertEqual(os.listdir(directory), [])


class Documents(unittest.TestCase):
    """Every kind of document that a command or one of its modes prints; those of batch: tests/batch."""

    seen = set()

    @classmethod
    def tearDownClass(cls):
        files = (file.name.split(".")[0] for file in (SOURCE / "docs" / "schema").glob("*.schema.json"))
        missing = {name for name in files if not name.startswith("batch")} - cls.seen - {"answer"}
        if missing:
            raise AssertionError(f"no document is held against the schemas of {sorted(missing)}")

    def valid(self, name, *args, code=0):
        self.seen.add(name)
        result = run(*args)
        self.assertEqual(result.returncode, code, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(next(iter(document)), "schema")
        self.assertEqual(schema_problems(name, document), [])
        return document

    def test_train_without_training_facts(self):
        document = self.valid("train", "train", "qwen3-next-80b-a3b", "--hw", "h100-sxm", "--chips", "64",
                              "--batch-tokens", "1M", "--json")
        self.assertIsNone(document["query"]["tokens"])
        for plan in document["plans"]:
            self.assertEqual(set(plan["run"].values()), {None})

    def test_the_book(self):
        self.valid("book", "book", "--json")
        section = self.valid("book", "book", "5.2", "--json")
        self.assertTrue(section["figures"])
        self.valid("book", "book", "1", "--solve", "--json")

    def test_launch_files(self):
        data = SOURCE.resolve() / "tests" / "data" / "launch"
        self.valid("export", "export", str(data / "plan.json"), "--to", "accelerate", "--json")
        self.valid("lint", "lint", str(data / "megatron.sh"), "--hw", "h100-sxm", "--model", "llama3-8b", "--json")

    def test_whole_runs(self):
        failures = ["--mtbf", "50000h", "--storage-bandwidth", "50GB/s"]
        shortage = [*failures, "--checkpoint", "async", "--repair-time", "24h", "--spares", "1", "--elastic"]
        power = ["--power", "activity", "--pue", "1.1", "--carbon", "57"]
        for words in (failures, shortage, ["--straggler", "5%"], [*failures, "--chip-spread", "1%"], power):
            for plan in self.valid("train", *QUESTION, *words, "--json", "--top", "2")["plans"]:
                economics = plan["run"]["economics"]
                self.assertEqual(economics is None, words is power)
                if economics:
                    self.assertAlmostEqual(sum(economics["time_s"].values()) / plan["run"]["time_s"], 1, places=9)
        self.valid("train-curve", *QUESTION[:-1], "32,64", *failures, "--json")
        self.valid("serve", "serve", "llama3-8b", "--hw", "h100-sxm", "--chips", "1", "--batch", "8", *power, "--json")

    def test_train(self):
        document = self.valid("train", *QUESTION, "--json", "--explain")
        self.assertTrue(document["explain"])
        for plan in document["plans"]:
            self.assertAlmostEqual(sum(plan["time_s"].values()) / plan["step_time_s"], 1, places=9)
            memory = dict(plan["memory_bytes"])
            total, capacity = memory.pop("total"), memory.pop("capacity")
            self.assertAlmostEqual(sum(memory.values()) / total, 1, places=9)
            self.assertLessEqual(total, capacity)

    def test_train_with_adapters(self):
        tune = self.valid("train", *QUESTION, "--lora", "16", "--base", "nf4", "--json", "--explain")["query"]["fine_tune"]
        self.assertEqual((tune["method"], tune["rank"], tune["base"]), ("qlora", 16, "nf4"))
        self.assertEqual(tune["trainable_parameters"], 41943040)
        self.assertEqual(tune["targets"], ["q", "k", "v", "o", "gate", "up", "down"])
        plain = self.valid("train", *QUESTION, "--lora", "8", "--lora-targets", "q,v", "--json")["query"]["fine_tune"]
        self.assertEqual((plain["method"], plain["base"], plain["base_bits"]), ("lora", None, 16))
        self.assertIsNone(self.valid("train", *QUESTION, "--json")["query"]["fine_tune"])

    def test_train_curve(self):
        words = ["train", "llama3-8b", "--hw", "tpu-v5p", "--offload", "none", "--chips", "1,64,100,128"]
        document = self.valid("train-curve", *words, "--json", "--pareto")
        points = document["curve"]
        self.assertEqual([p["status"] for p in points], ["out_of_memory", "planned", "not_built", "planned"])
        alone = self.valid("train", *words[:-1], "128", "--json")["plans"][0]
        self.assertEqual(points[-1]["plan"], alone)
        self.assertAlmostEqual(points[-1]["efficiency"], points[-1]["speed_up"] / 2)
        costs = [plan["run"]["cost_usd"] for plan in document["pareto"]]
        times = [plan["run"]["time_s"] for plan in document["pareto"]]
        self.assertEqual((times, costs), (sorted(times), sorted(costs, reverse=True)))
        lines = [json.loads(line) for line in run(*words, "-o", "jsonl").stdout.splitlines()]
        self.assertEqual([line["chips"] for line in lines], [1, 64, 100, 128])
        self.assertEqual([line["plan"] for line in lines], [p["plan"] for p in points])
        header, *rows = run(*words, "-o", "csv").stdout.decode().splitlines()
        self.assertEqual((header.split(",")[0], len(rows)), ("chips", 4))
        single = self.valid("train-curve", *QUESTION, "--json", "--pareto", "--fix", "dp=64")
        self.assertEqual((len(single["pareto"]), single["machine_sizes"], single["linear"]), (1, 1, None))
        nothing = self.valid("train-curve", "train", "llama3-70b", "--hw", "h100-sxm", "--offload", "none",
                             "--chips", "1..4", "--json", code=3)
        self.assertEqual({p["plan"] for p in nothing["curve"]}, {None})
        self.valid("error", "train", "llama3-8b", "--hw", "h100-sxm", "--chips", "256..8", "--json", code=2)

    def test_train_on_a_torus_with_experts(self):
        self.valid("train", "train", "mixtral-8x7b", "--hw", "tpu-v5p", "--chips", "256", "--json", "--variants",
                   "--fix", "tp=2", "--set", "hw.hbm.bandwidth=3TB/s", "--efficiency", "ideal")

    def test_trace(self):
        for words in (["gpt3-175b", "--hw", "a100-80g", "--chips", "1024", "--fix", "tp=8,pp=8", "--batch-seqs", "192"],
                      ["llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--plan", "2"],
                      ["mixtral-8x7b", "--hw", "tpu-v5p", "--chips", "256", "--fix", "pp=4,vpp=1", "--schedule", "gpipe",
                       "--efficiency", "ideal", "--detail", "blocks", "--batch-seqs", "256"]):
            document = self.valid("trace", "trace", *words, "--json")
            self.assertEqual(crossing(document["traceEvents"]), [])
            for stage in document["stages"]:
                self.assertAlmostEqual(stage["busy_share"] + stage["end_share"] + stage["idle_share"], 1, places=9)
            ends = [e["ts"] + e["dur"] for e in document["traceEvents"] if e["ph"] == "X"]
            self.assertAlmostEqual(max(ends) / 1e6, document["simulated_step_time_s"], places=8)
        short = self.valid("trace", "trace", "llama3-70b", "--hw", "h100-sxm", "--chips", "4", "--offload", "none", "--json", code=3)
        self.assertEqual((short["traceEvents"], short["stages"]), ([], []))
        self.assertTrue(short["nothing_fits"])
        self.valid("error", "trace", *QUESTION[1:], "--plan", "0", "--json", code=2)

    def test_profile(self):
        recordings = SOURCE / "tests" / "data" / "profiles"
        for name, hw in (("kineto.json", "h100-sxm"), ("trace-viewer.json", "tpu-v4")):
            document = self.valid("profile", "profile", recordings / name, "--hw", hw, "--json")
            self.assertAlmostEqual(sum(part["time_s"] for part in document["time"]), document["step_time_s"], places=12)
        self.valid("profile-hlo", "profile", recordings / "step.hlo", "--hw", "tpu-v5p", "--json")
        with tempfile.TemporaryDirectory() as place:
            answer = os.path.join(place, "answer.json")
            measured = self.valid("train", "train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--measured", "38%:6n", "--json")
            self.assertAlmostEqual(next(c["mfu"] for c in measured["measured"]["mfu_conventions"] if c["name"] == "6n"), 0.38)
            # A step that a chip could take in the recording's 365 us: 96 GFLOP of 361 at its peak.
            run("train", "gpt2", "--hw", "h100-sxm", "--chips", "1", "--seq", "128", "--batch-seqs", "1", "-o", f"json={answer}")
            gap = self.valid("profile", "profile", recordings / "kineto.json", "--hw", "h100-sxm", "--layout", answer, "--json")
            self.assertAlmostEqual(sum(t["predicted_s"] for t in gap["terms"]) / gap["predicted"]["step_time_s"], 1)

    def test_sensitivity(self):
        ask = ["sensitivity", "gpt2-1.5b", "--hw", "h100-sxm", "--chips", "8", "--batch-seqs", "64"]
        document = self.valid("sensitivity", *ask, "--json", "--explain", "--coefficients", "--price", "2")
        sign = {"rate": 1, "time": -1, "coefficient": 0, "model": 0}
        self.assertAlmostEqual(sum(sign[e["kind"]] * e["elasticity"] for e in document["elasticities"]), -1, places=9)
        self.assertEqual(document["sum_rule"]["sum"], document["sum_rule"]["rates"] - document["sum_rule"]["times"])
        step = document["plan"]["step_time_s"]
        for e in document["elasticities"]:
            self.assertAlmostEqual(e["high_change"], e["high_step_time_s"] / step - 1, places=12)
        train = json.loads(run("train", *ask[1:], "--json").stdout)["plans"][0]
        self.assertEqual(train["step_time_s"], step)
        for rate in document["reoptimised"]:
            self.assertGreaterEqual(rate["gain_reoptimised"], rate["gain"] - 1e-12)
        for more in (["--fixed"], ["--objective", "cost", "--price", "2"],
                     ["--set", "hw.hbm.bandwidth=1TB/s..4TB/s*2", "--set", "hw.hbm.capacity=1GB,80GB"]):
            self.valid("sensitivity", *ask, "--json", *more)
        rows = run(*ask, "-o", "csv").stdout.decode().splitlines()
        self.assertEqual(len(rows) - 1, len(json.loads(run(*ask, "--json").stdout)["elasticities"]))
        nothing = self.valid("sensitivity", "sensitivity", "llama3-70b", "--hw", "h100-sxm", "--chips", "4", "--offload",
                             "none", "--json", code=3)
        self.assertEqual((nothing["elasticities"], nothing["balance"]), ([], []))
        self.assertTrue(nothing["nothing_fits"])
        self.valid("error", *ask, "--swing", "2", "--json", code=2)

    def test_sensitivity_of_serving(self):
        ask = ["sensitivity", "serve", "llama3-8b", "--hw", "h100-sxm", "--chips", "2", "--prompt", "1024",
               "--generate", "128"]
        document = self.valid("sensitivity-serve", *ask, "--json")
        best = json.loads(run("serve", *ask[2:], "--json").stdout)["best"]
        for key in ("chips", "batch", "tpot_s", "ttft_s", "tokens_per_s_per_chip"):
            self.assertEqual(document["point"][key], best[key], key)
        for rate in document["rates"]:
            # By the objective, the product of both, what is free is no worse than what is kept.
            kept, free = ((1 + rate["tokens_per_s_per_chip_" + which]) / (1 + rate["tpot_" + which])
                          for which in ("more", "free"))
            self.assertGreaterEqual(free, kept - 1e-9, rate["input"])
            if "bandwidth" in rate["input"] or "matmul" in rate["input"]:
                self.assertLessEqual(rate["tpot_more"], 1e-12, rate["input"])
                self.assertGreaterEqual(rate["tpot_less"], -1e-12, rate["input"])
        bandwidth = next(r for r in document["rates"] if r["input"] == "hw.hbm.bandwidth")
        moved = json.loads(run("serve", *ask[2:], "--json", "--set",
                               "hw.hbm.bandwidth=%.17gB/s" % (1.1 * bandwidth["value"])).stdout)["best"]
        self.assertAlmostEqual(moved["tpot_s"] / best["tpot_s"] - 1, bandwidth["tpot_free"], places=9)
        fixed = self.valid("sensitivity-serve", *ask, "--fixed", "--json")
        self.assertTrue(all(r["tpot_free"] is None for r in fixed["rates"]))
        nothing = self.valid("sensitivity-serve", "sensitivity", "serve", "llama3-70b", "--hw", "h100-sxm", "--chips",
                             "1", "--json", code=3)
        self.assertEqual(nothing["rates"], [])
        self.valid("error", "sensitivity", "serve", "llama3-8b", "--hw", "h100-sxm,h200", "--json", code=2)

    def test_pools_and_clients(self):
        ask = ["serve", "llama3-70b", "--hw", "h100-sxm", "--chips", "16", "--prompt", "2048", "--generate", "256",
               "--disaggregate", "on", "--fix", "prefill.tp=4,decode.tp=8"]
        document = self.valid("serve", *ask, "--concurrency", "32", "--json")
        queue = document["queueing"]
        # Little's law: requests a second times request time are the clients, but for ramp and end.
        self.assertAlmostEqual(queue["rate_requests_per_s"] * queue["request_time_s"]["mean"] / 32, 1, delta=0.1)
        self.assertEqual(queue["decode_servers"], 1)
        self.valid("serve", *ask, "--rate", "max", "--slo-ttft", "1s", "--simulate", "500", "--json")

    def test_matmul(self):
        document = self.valid("matmul", *SHARDED, "--measured", "1ms,900us", "--top", "100", "--json", "--explain")
        self.assertEqual(len(document["strategies"]), document["strategies_total"])
        self.assertEqual(document["strategies"][0]["name"], document["best"])
        for strategy in document["strategies"]:
            sent = sum(c["time_s"] for c in strategy["collectives"])
            self.assertAlmostEqual(sent, strategy["communication_time_s"], places=12)
            self.assertEqual(max(strategy["compute_time_s"], strategy["communication_time_s"]), strategy["time_s"])
        self.valid("matmul", "matmul", "A[I, J_X] * B[J_X, K] * W[K, L_Y]", "--hw", "h100-sxm", "--mesh", "X=2,Y=8",
                   "--dims", "I=64,J=128,K=64,L=32", "--efficiency", "calibrated", "--json")
        alone = self.valid("matmul", "matmul", "A[I_X, J]", "--mesh", "X=4", "--dims", "I=8,J=4", "--json")
        self.assertNotIn("strategies", alone)

    def test_why_not(self):
        document = self.valid("train", *QUESTION, "--stack", "megatron", "--json", "--top", "3", "--why-not", "tp=64",
                              "--why-not", "cp=2", "--why-not", "tp=8", "--why-not", "tp=1,cp=1,pp=1")
        self.assertEqual([v["outcome"] for v in document["why_not"]], ["illegal", "rank_1", "outranked", "tied"])
        against = document["why_not"][2]["against_plan_1"]
        change = sum(f["change_s"] for f in against["time_s"])
        self.assertAlmostEqual(change / document["plans"][0]["step_time_s"], against["slower_per_token"], places=9)
        short = ["train", "llama3-70b", "--hw", "h100-sxm", "--chips"]
        document = self.valid("train", *short, "64", "--json", "--top", "1", "--why-not", "tp=1,pp=1,zero=1")
        self.assertGreater(document["why_not"][0]["least_memory"]["over_by_bytes"], 0)
        document = self.valid("train", *short, "4", "--offload", "none", "--json", "--why-not", "tp=4", code=3)
        self.assertIsNone(document["why_not"][0]["against_plan_1"])

    def test_from_a_saved_answer(self):
        with tempfile.TemporaryDirectory() as place:
            saved = pathlib.Path(place) / "answer.json"
            run(*QUESTION, "--quiet", "-o", f"json={saved}")
            document = self.valid("train", *QUESTION[:-1], "128", "--json", "--from", f"{saved}#2")
        recorded = json.loads(run(*QUESTION, "--json").stdout)["plans"][1]
        self.assertEqual(document["from"]["recorded"]["step_time_s"], recorded["step_time_s"])
        self.assertEqual(document["from"]["reference"]["tp"], recorded["layout"]["tp"])
        self.assertTrue(document["from"]["adapted"])
        document = self.valid("train", *QUESTION, "--json", "--from", "tp=8")
        self.assertIsNone(document["from"]["recorded"])

    def test_nothing_fits(self):
        document = self.valid("train", "train", "llama3-70b", "--hw", "h100-sxm", "--chips", "4", "--offload", "none", "--json", code=3)
        self.assertEqual(document["plans"], [])
        self.assertGreater(document["nearest_miss"]["over_by_bytes"], 0)

    def test_roofline(self):
        matmul = ["roofline", "matmul", "64x4096x4096", "--hw", "tpu-v5e", "--json"]
        for more in ([], ["--explain"], ["--batch", "8..1024"], ["--measured", "1ms,2ms"],
                     ["--efficiency", "calibrated"], ["--from", "vmem", "--vmem-multiple", "22"], ["--from", "host"],
                     ["--chips", "4", "--split", "output", "--over", "ici"],
                     ["--chips", "2", "--split", "contraction", "--over", "link", "--count", "none"]):
            document = self.valid("roofline", *matmul, *more)
            self.assertIn("critical_batch", document)
        for words in (["matmul", "8x64x64", "tile=8x8x8"], ["matmul", "8x100x300", "pad=128"],
                      ["attention", "heads=8", "head_dim=64", "query=64..512"],
                      ["contract", "ij,jk->ik", "i=8", "j=8", "k=8"], ["add", "1Ki..1Mi*4"], ["elementwise", "1Mi"],
                      ["dot", "1M"], ["load", "7B"], ["flops", "1e12"], ["bytes", "4GB"]):
            self.valid("roofline", "roofline", *words, "--hw", "tpu-v5e", "--json")
        self.valid("error", "roofline", "matmull", "8x8x8", "--hw", "tpu-v5e", "--json", code=2)

    def test_bounds(self):
        train = ["--for", "training", "--json"]
        for words in (["llama3-70b", "--hw", "book/tpu-v5p", "--chips", "8960", "--explain"],
                      ["llama3-70b", "--hw", "book/tpu-v5p", "--pods", "4", "--fix", "tp=4"],
                      ["70B", "--hw", "book/h100"],
                      ["deepseek-v3", "--hw", "h800", "--chips", "2048", "--fix", "ep=64,pp=16,dp=2,ga=30",
                       "--versus", "book/tpu-v5p", "--gpu-hours", "2.79M", "--efficiency", "calibrated"]):
            document = self.valid("bounds", "bounds", *words, *train)
            names = [rule["name"] for rule in document["bounds"]]
            self.assertEqual(len(names), len(set(names)))
        self.valid("bounds", "bounds", "llama3-70b", "--hw", "book/tpu-v5e", "--json")
        self.valid("bounds", "bounds", "llama3-70b", "--hw", "h100-sxm", "--chips", "64", "--for", "both", "--json")

    def test_bounds_of_serving(self):
        serving = ["--for", "serving", "--json"]
        for words in (["llama3-70b", "--hw", "book/tpu-v5e", "--batch", "1..512", "--prompt", "8192", "--generate", "512"],
                      ["30B", "--hw", "book/tpu-v5e", "--batch", "4", "--step-time", "19ms"],
                      ["deepseek-v3", "--hw", "h800", "--chips", "32", "--context", "4096", "--batch", "64", "--explain",
                       "--speculative", "draft=llama3-8b,k=4,accept=0.7", "--efficiency", "calibrated"]):
            document = self.valid("bounds", "bounds", *words, *serving)
            self.assertEqual(len(document["points"]), len(document["query"]["serving"]["batch"]))
            for point in document["points"]:
                if point["bound_by"]:
                    parts = point["kv_time_s"] + max(point["weight_load_time_s"], point["mlp_compute_time_s"])
                    self.assertAlmostEqual(point["decode_step_s"] / parts, 1, places=12)
        self.valid("error", "bounds", "70B", "--hw", "tpu-v5q", "--json", code=2)

    def test_collective(self):
        gather = ["--array", "bf16[1024_X,4096_Y]", "--mesh", "X=4,Y=4,Z=4", "--axes", "X", "--replicated", "Z"]
        for words in (["all-gather", "--hw", "tpu-v5p", *gather, "--explain"],
                      ["all-reduce", "--hw", "h100-sxm", "--group", "8,1024", "--bytes", "1KiB..1GiB*32"],
                      ["all-reduce", "--hw", "h100-sxm", "--mesh", "X=4,Y=256", "--axes", "X", "--bytes", "1GB",
                       "--in-network", "on", "--convention", "exact", "--measured", "1ms,370GB/s"],
                      ["all-to-all", "--hw", "h100-sxm", "--group", "8,64", "--bytes", "64MiB", "--top-k", "4"],
                      ["all-to-all", "--hw", "tpu-v5e", "--group", "4,16", "--bytes", "1GB", "--top-k", "2"],
                      ["reduce-scatter", "--hw", "tpu-v5p", "--mesh", "X=8,dcn=2", "--bytes", "1GB"],
                      ["all-gather", "--hw", "h100-sxm", "--group", "1", "--bytes", "1GB", "--efficiency", "calibrated"],
                      ["permute", "--hw", "tpu-v5e", "--mesh", "X=4,Y=4", "--from", "0,0", "--to", "3,3", "--bytes", "1MB"],
                      ["permute", "--hw", "h100-sxm", "--group", "16", "--bytes", "1MB"]):
            points = self.valid("collective", "collective", *words, "--json")["points"]
            rows = run("collective", *words, "-o", "csv").stdout.decode().splitlines()
            self.assertEqual([float(row.split(",")[2]) for row in rows[1:]], [p["time_s"] for p in points])
        self.valid("error", "collective", "all-gater", "--hw", "tpu-v5e", "--group", "4", "--bytes", "1MB", "--json",
                   code=2)

    def test_hw(self):
        for words in (["tpu-v5p", "--topology", "4x4x8"], ["h100-sxm", "b200", "v100", "--explain"],
                      ["book/tpu-v5e", "--topology", "4x4", "--load", "128Kix128Ki", "--batch", "8", "--from", "0,0",
                       "--to", "3,3", "--bytes", "16MiB", "--pad", "100x300"],
                      ["book/h100", "--chips", "2048", "--set", "hw.network.2.switches=32", "--registers", "256"]):
            document = self.valid("hw", "hw", *words, "--json")
            for chip in document["chips"]:
                rates, peaks = chip["bandwidth_bytes_per_s"], chip["matmul_flops_per_s"]
                peak = peaks[chip["critical_intensity_dtype"]]
                for channel, intensity in chip["critical_intensity_flops_per_byte"].items():
                    self.assertAlmostEqual(intensity * rates[channel] / peak, 1, places=9)
        for words in ([], ["--book"]):
            listed = self.valid("hw-list", "hw", "list", *words, "--json")["chips"]
            for chip in self.valid("hw", "hw", *(chip["name"] for chip in listed), "--json")["chips"]:
                self.assertTrue(chip["sources"], chip["name"])
        self.assertEqual(self.valid("hw-list", "hw", "--min-memory", "100TB", "--json")["chips"], [])
        for words in (["hw", "h100-sxm"], ["hw", "tpu-v5p", "--set", "hw.hbm.bandwidth=5TB/s"], ["model", "deepseek-v3"]):
            self.assertGreater(len(self.valid("keys", *words, "--keys", "--json")["keys"]), 40)
        self.valid("error", "hw", "tpu-v5pp", "--json", code=2)

    def test_model(self):
        document = self.valid("model", "model", "llama3-70b", "--json")
        self.assertEqual(document["parameters"]["total"], 70553706496)
        self.assertEqual(document["contexts"][-1]["seq"], 8192)
        experts = self.valid("model", "model", "deepseek-v3", "--against", "llama3-70b", "--json", "--explain")
        self.assertTrue(experts["explain"])
        self.assertEqual(experts["moe"]["experts"], 256)
        for name in ("gemma-3-27b", "jamba-v0.1"):
            self.valid("model", "model", name, "--attention", "full", "--json")
        config = str(SOURCE / "tests" / "data" / "hf" / "llama-3.1-8b.json")
        self.assertEqual(self.valid("model", "model", config, "--json")["parameters"]["total"], 8030261248)
        listed = self.valid("model-list", "model", "list", "--json")["models"]
        self.assertEqual(len(listed), len(list((SOURCE / "configs" / "models").rglob("*.yaml"))))
        for words in (["llama3-70bb"], ["list", "nonesuch"], ["llama3-70b", "--seq", "0"]):
            self.valid("error", "model", *words, "--json", code=2)

    def test_a_count_of_layers(self):
        count = ["--set", "model.layers=96", "--json"]
        deeper = self.valid("model", "model", "deepseek-v3", *count)
        self.assertEqual([group["layers"] for group in deeper["layers"]], [3, 93])
        machine = ["--hw", "h100-sxm", "--chips", "512"]
        for words in (["train", "llama3-8b", *machine], ["bounds", "llama3-8b", *machine[:2]]):
            changed, usual = run(*words, *count), run(*words, "--json")
            self.assertEqual((changed.returncode, usual.returncode), (0, 0), changed.stderr + usual.stderr)
            self.assertNotEqual(changed.stdout, usual.stdout)

    def test_a_printed_model_file_is_the_same_model(self):
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "deeper.yaml"
            file.write_bytes(run("model", "deepseek-v3", "--set", "model.layers=96", "--dump-yaml").stdout)
            again = self.valid("model", "model", str(file), "--json")
        direct = self.valid("model", "model", "deepseek-v3", "--set", "model.layers=96", "--json")
        self.assertEqual(again["parameters"], direct["parameters"])

    def test_scaling_law(self):
        document = self.valid("scaling-law", "scaling-law", "llama3-8b", "--inference-tokens", "10T", "--json", "--explain")
        optimum, lifetime, model = document["allocations"]
        self.assertEqual((model["kind"], model["tokens"]), ("model", 15e12))
        self.assertLess(lifetime["lifetime_flops"], optimum["lifetime_flops"])
        self.assertAlmostEqual(lifetime["loss"], optimum["loss"], places=12)
        saved = optimum["lifetime_flops"] - lifetime["lifetime_flops"]
        self.assertAlmostEqual(document["saving"]["flops"] / saved, 1, places=9)
        self.valid("scaling-law", "scaling-law", "--budget", "5M", "--hw", "h100-sxm", "--mfu", "40%", "--json")
        for law in document["laws"]:
            self.valid("scaling-law", "scaling-law", "--flops", "1e24", "--law", law["law"], "--json")
        self.valid("error", "scaling-law", "--flops", "1e24", "--law", "kaplann", "--json", code=2)

    def test_model_design(self):
        words = ["model", "design", "--hw", "h100-sxm", "--chips", "16"]
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "mine.yaml"
            found = self.valid("model-design", *words, "--deadline", "10d", "--write", str(file), "--json", "--explain")
            best = found["models"][0]
            train = self.valid("train", "train", str(file), "--hw", "h100-sxm", "--chips", "16", "--json")["plans"][0]
        self.assertEqual((train["step_time_s"], train["mfu"]), (best["step_time_s"], best["mfu"]))
        self.assertAlmostEqual(train["run"]["time_s"] / best["run_time_s"], 1, places=12)
        self.assertAlmostEqual(train["run"]["cost_usd"] / best["cost_usd"], 1, places=12)
        sizes = [model["parameters"] for model in found["models"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.valid("model-design", *words, "--budget", "20k", "--experts", "16,2", "--json")
        self.assertEqual(self.valid("model-design", *words, "--deadline", "1s", "--json", code=3)["models"], [])

    def test_validate(self):
        train = str(SOURCE / "configs" / "measurements" / "train.yaml")
        memory = str(SOURCE / "configs" / "measurements" / "memory.yaml")
        some = [train, "--only", "chip=h200,mi325x"]
        document = self.valid("validate", "validate", *some, "--json")
        self.assertEqual(document["summary"]["rows"], len(document["rows"]) + len(document["skipped_rows"]))
        errors = [row["predicted"] / row["measured"] - 1 for row in document["rows"]]
        self.assertAlmostEqual(document["summary"]["bias"], sum(errors) / len(errors), places=12)
        self.assertAlmostEqual(document["summary"]["mean_abs_error"], sum(map(abs, errors)) / len(errors), places=12)
        for row in document["rows"]:
            self.assertAlmostEqual(sum(row["time_s"].values()), row["predicted"], places=9)
        lines = csv.DictReader(run("validate", *some, "-o", "csv").stdout.decode().splitlines())
        self.assertEqual([float(line["error"]) for line in lines], [row["error"] for row in document["rows"]])
        self.assertEqual(self.valid("validate", "validate", memory, "--json")["query"]["quantity"], "memory_bytes")
        self.valid("validate", "validate", *some, "--max-error", "100%", "--json")
        failed = self.valid("validate", "validate", *some, "--max-error", "0.01%", "--json", code=1)
        self.assertEqual(failed["summary"], document["summary"])
        self.valid("error", "validate", train, "--only", "chip=h201", "--json", code=2)

    def test_validate_sets_that_ship(self):
        self.assertEqual(self.valid("validate", "validate", "train", "--only", "chip=h200", "--json")["query"]["quantity"],
                         "step_time_s")
        self.assertEqual(self.valid("validate", "validate", "memory", "--json")["query"]["quantity"], "memory_bytes")
        served = self.valid("validate-serve", "validate", "serve", "--json")
        self.assertEqual(served["summary"]["rows"], len(served["rows"]) + len(served["skipped_rows"]))
        for row in served["rows"]:
            self.assertAlmostEqual(row["predicted"] / row["measured"] - 1, row["error"], places=9)
        self.valid("validate-serve", "validate", "serve", "--only", "chip=h200", "--efficiency", "ideal", "--worst", "3", "--json")

    def test_calibrate_serving(self):
        words = ["calibrate", "serve", "--only", "chip=h200,h100-sxm", "--folds", "2"]
        document = self.valid("calibrate-serve", *words, "--json")
        self.assertLess(document["summary"]["inside"]["mean_abs_error"], document["summary"]["before"]["mean_abs_error"])
        self.assertEqual(sum(s["rows"] for s in document["sets"]), sum(row["stack"] != "" for row in document["rows"]))

    def test_calibrate(self):
        train = str(SOURCE / "configs" / "measurements" / "train.yaml")
        words = ["calibrate", train, "--hw", "mi355x", "--stack", "primus"]  # no set of theirs is shipped
        document = self.valid("calibrate", *words, "--json")
        before, inside, outside, family = (errors["mean_abs_error"] for errors in document["errors"])
        self.assertLess(inside, before)
        self.assertLessEqual(inside, outside)
        self.assertEqual(sum(fold["rows"] for fold in document["folds"]), document["query"]["rows"])
        block = run(*words, "--date", "2026-11", "--dump-yaml").stdout.decode()
        self.assertTrue(block.startswith("efficiency:"), block)
        self.assertIn("fitted 2026-11", block)
        self.valid("error", "calibrate", train, "--hw", "t4", "--json", code=2)

    def test_compare(self):
        words = ["compare", "llama3-8b", "--hw", "h100-sxm,tpu-v5p,tpu-v5e:300,gaudi3", "--chips", "64", "--json"]
        document = self.valid("compare", *words, "--explain", "--equal-time")
        systems = {s["system"]: s for s in document["systems"]}
        self.assertEqual(systems["tpu-v5e"]["status"], "not built")
        self.assertIsNone(systems["gaudi3"]["run"]["cost_usd"])
        alone = json.loads(run(*QUESTION, "--top", "1", "--json").stdout)["plans"][0]
        for key in ("layout", "placement", "step_time_s", "time_s", "mfu", "run", "chips", "idle_chips", "shape"):
            found, wanted = systems["h100-sxm"][key], alone[key]
            if key == "run":  # power and losses are told apart by train alone
                wanted = {name: wanted[name] for name in found}
            self.assertEqual(found, wanted, key)
        for pair in document["break_even"]:
            cost = pair["usd_per_chip_hour"] * systems[pair["system"]]["run"]["chip_hours"]
            self.assertAlmostEqual(cost / systems[pair["against"]]["run"]["cost_usd"], 1, places=12)
        self.assertTrue(document["explain"])
        lines = [json.loads(line) for line in run(*words[:-1], "-o", "jsonl").stdout.splitlines()]
        self.assertEqual([line["system"] for line in lines], [s["system"] for s in document["systems"]])
        sized = self.valid("compare", *words, "--deadline", "1000d", "--budget", "10M")
        self.assertGreater(sized["search"]["counts"], 0)
        offers = self.valid("compare", *words[:3], "h100-sxm,tpu-v5p", "--price-kind", "all", *words[4:])
        self.assertGreater(len({s["system"] for s in offers["systems"]}), 2)
        nothing = self.valid("compare", *words[:3], "h100-sxm:65", "--json", code=3)
        self.assertEqual([s["status"] for s in nothing["systems"]], ["not built"])
        self.valid("error", *words, "--cloud", "nonesuch", code=2)

    def test_compare_serving(self):
        words = ["compare", "llama3-8b", "--serve", "--hw", "h100-sxm,t4", "--chips", "4", "--prompt", "1024",
                 "--generate", "128", "--slo-tpot", "10ms", "--json"]
        document = self.valid("compare", *words, "--explain", "--expect", "cheapest=h100-sxm")
        self.assertEqual([s["status"] for s in document["systems"]], ["answered", "too slow"])
        best = json.loads(run("serve", *words[1:2], "--hw", "h100-sxm", *words[5:], "--objective", "cost").stdout)["best"]
        for key in ("layout", "batch", "tpot_s"):
            self.assertEqual(document["systems"][0][key], best[key], key)
        self.assertAlmostEqual(document["systems"][0]["usd_per_million_output_tokens"],
                               best["usd_per_million_output_tokens"], places=9)
        self.valid("compare", *words, "--expect", "possible=t4", code=1)

    def test_serve(self):
        question = ("serve", "llama3-70b", "--hw", "h100-sxm", "--prompt", "2048", "--generate", "256", "--json")
        document = self.valid("serve", *question, "--chips", "8", "--explain")
        for point in [*document["points"], document["best"]]:
            self.assertAlmostEqual(sum(point["time_s"].values()), point["decode_step_s"], delta=1e-12)
            parts = {k: v for k, v in point["memory_bytes"].items() if k not in ("total", "capacity")}
            self.assertAlmostEqual(sum(parts.values()), point["memory_bytes"]["total"], delta=1)
            self.assertLessEqual(point["decode_step_low_s"], point["decode_step_s"])
            self.assertLessEqual(point["decode_step_s"], point["decode_step_high_s"])
        pools = self.valid("serve", *question, "--chips", "16", "--disaggregate", "on")["disaggregation"]
        self.assertLessEqual(pools["prefill_chips"] + pools["decode_chips"], 16)
        self.assertIn("speculation", self.valid("serve", *question, "--chips", "8", "--speculative",
                                                "draft=llama3-8b,k=4,accept=0.7"))
        self.assertEqual(self.valid("serve", *question, "--chips", "1", code=3)["points"], [])
        at_rate = self.valid("serve", *question, "--chips", "8", "--rate", "2", "--simulate", "200")["queueing"]
        self.assertTrue(at_rate["carries"])
        self.assertLessEqual(at_rate["ttft_s"]["p50"], at_rate["ttft_s"]["p99"])
        both = self.valid("serve", *question, "--chips", "16", "--disaggregate", "on", "--rate", "2", "--simulate", "200")
        self.assertGreaterEqual(both["queueing"]["prefill_servers"], 1)
        limits = self.valid("serve", *question, "--chips", "8", "--slo-tpot", "1ms", code=3)["limits"]
        self.assertEqual([limit["name"] for limit in limits], ["tpot"])

    def sums(self, document):
        self.assertAlmostEqual(sum(document["step"]["time_s"].values()), document["step"]["step_time_s"], delta=1e-9)
        self.assertEqual(document["step"]["step_time_s"], min(plan["step_time_s"] for plan in document["plans"]))

    def explains(self, document, *names):
        steps = {step["name"]: step for section in document["explain"] for step in section["steps"]}
        self.assertAlmostEqual(steps["step"]["value"], document["step"]["step_time_s"], delta=1e-9)
        for name in names:
            self.assertIn(name, steps)

    def test_distill(self):
        question = ("distill", "llama3.2-1b", "--hw", "h100-sxm", "--tokens", "10B", "--batch-tokens", "1M", "--seq",
                    "4096", "--json")
        same = (*question, "--teacher", "llama3.1-8b", "--chips", "32")
        explained = self.valid("distill", *same, "--storage-bandwidth", "1TB/s", "--explain")
        self.sums(explained)
        self.explains(explained, "cost", "step of the plan", "a batch", "times the student alone")
        for where in ("shared", "split"):
            self.sums(self.valid("distill", *same, "--teacher-on", where))
        self.sums(self.valid("distill", *question, "--teacher", "qwen2.5-7b", "--chips", "32", "--loss", "sequence",
                             "--prompt", "256", "--generate", "512"))
        self.valid("error", *question, "--teacher", "qwen2.5-7b", "--chips", "32", code=2)
        short = self.valid("distill", *question, "--teacher", "llama3.1-405b", "--chips", "1", code=3)["shortages"]
        self.assertIn("teacher", [s["who"] for s in short])

    def test_rl(self):
        question = ("rl", "llama3.2-1b", "--hw", "h100-sxm", "--prompts", "32", "--rollouts", "8", "--prompt", "256",
                    "--generate", "128..1024", "--json")
        for words in ((), ("--async", "1"), ("--async", "4"), ("--placement", "colocated"),
                      ("--algorithm", "ppo", "--reward", "llama3.2-3b"), ("--trainer-state", "offloaded")):
            self.sums(self.valid("rl", *question, "--chips", "16", *words))
        self.explains(self.valid("rl", *question, "--chips", "16", "--explain"), "weights to the engine", "cost",
                      "step of the plan", "a step of so many", "share of generation")
        short = ("rl", "llama3.1-70b", "--hw", "h100-sxm", "--chips", "1", *question[4:])
        self.assertTrue(self.valid("rl", *short, code=3)["shortages"])
        self.valid("error", *question, "--chips", "16", "--algorithm", "pop", code=2)

    def test_errors(self):
        self.valid("error", *QUESTION, "--fix", "tq=1", "--json", code=2)
        self.valid("error", "--json", "trian", code=2)
        self.valid("error", "train", "./nothing.yaml", "--hw", "h100-sxm", "--chips", "8", "-o", "json", code=2)

    def test_pinning_a_plan_gives_that_plan(self):
        plan = self.valid("train", *QUESTION, "--json")["plans"][0]
        layout = plan["layout"]
        pins = ",".join(f"{key}={layout[key]}" for key in
                        ("dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp", "zero", "micro_batch_seqs", "grad_accum",
                         "remat"))
        pins += f",sp={int(layout['sp'])}"
        again = self.valid("train", *QUESTION, "--json", "--fix", pins)["plans"]
        self.assertEqual([p["layout"] for p in again], [layout])
        self.assertEqual(again[0]["step_time_s"], plan["step_time_s"])

    def test_jsonl_and_csv_agree_with_json(self):
        plans = self.valid("train", *QUESTION, "--json")["plans"]
        lines = [json.loads(line) for line in run(*QUESTION, "-o", "jsonl").stdout.splitlines()]
        self.assertEqual([line["step_time_s"] for line in lines], [p["step_time_s"] for p in plans])
        self.assertEqual({next(iter(line)) for line in lines}, {"schema"})
        header, *rows = run(*QUESTION, "-o", "csv").stdout.decode().splitlines()
        column = header.split(",").index("step_time_s")
        self.assertEqual([float(row.split(",")[column]) for row in rows], [p["step_time_s"] for p in plans])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
