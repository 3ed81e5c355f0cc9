"""The real binary under real streams: full devices, closed pipes, terminals, other directories; and its JSON against
the published schemas. Usage: binary_test.py BINARY SOURCE_DIR"""
import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SOURCE = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2])
QUESTION = ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64"]


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
    return b"".join(chunks).decode().replace("\r\n", "\n").splitlines(), os.waitstatus_to_exitcode(status)


def schema_problems(name, document):
    try:
        import jsonschema
    except ImportError:
        return ["python3-jsonschema is not installed"]
    schema = json.loads((SOURCE / "docs" / "schema" / f"{name}.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return [f"{list(e.path)}: {e.message}" for e in jsonschema.Draft7Validator(schema).iter_errors(document)]


class Streams(unittest.TestCase):
    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout.decode(), r"^scalecalc \d+\.\d+\.\d+\n$")

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
        command = f'"{BINARY}" {" ".join(QUESTION)} --variants --top 2000 -o csv --quiet | head -n 1'
        for prefix in ("", "trap '' PIPE; "):
            result = subprocess.run(["bash", "-c", prefix + command], capture_output=True, timeout=120, check=False)
            self.assertEqual(result.stderr, b"")
            self.assertTrue(result.stdout.startswith(b"rank,chips,"))

    def test_interrupt(self):
        words = ["train", "deepseek-v3", "--hw", "h100-sxm", "--chips", "16384"]
        process = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        self.assertIn(process.returncode, (0, 130))  # 0: it was faster than the signal
        if process.returncode == 130:
            self.assertIn(b"interrupted", out)

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
        for width in (60, 80, 100):
            for words in (QUESTION, QUESTION + ["--explain"], short, experts):
                lines, code = run_in_terminal(width, *words, NO_COLOR="1")
                self.assertIn(code, (0, 3))
                wide = [line for line in lines if len(line) > width]
                self.assertEqual(wide, [], f"{width} columns: {words}")
                self.assertFalse(any("\x1b" in line for line in lines))

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


class Documents(unittest.TestCase):
    def valid(self, name, *args, code=0):
        result = run(*args)
        self.assertEqual(result.returncode, code, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(next(iter(document)), "schema")
        self.assertEqual(schema_problems(name, document), [])
        return document

    def test_train(self):
        document = self.valid("train", *QUESTION, "--json", "--explain")
        self.assertTrue(document["explain"])
        for plan in document["plans"]:
            self.assertAlmostEqual(sum(plan["time_s"].values()) / plan["step_time_s"], 1, places=9)
            memory = dict(plan["memory_bytes"])
            total, capacity = memory.pop("total"), memory.pop("capacity")
            self.assertAlmostEqual(sum(memory.values()) / total, 1, places=9)
            self.assertLessEqual(total, capacity)

    def test_train_on_a_torus_with_experts(self):
        self.valid("train", "train", "mixtral-8x7b", "--hw", "tpu-v5p", "--chips", "256", "--json", "--variants",
                   "--fix", "tp=2", "--set", "hw.hbm.bandwidth=3TB/s", "--efficiency", "ideal")

    def test_nothing_fits(self):
        document = self.valid("train", "train", "llama3-70b", "--hw", "h100-sxm", "--chips", "4", "--json", code=3)
        self.assertEqual(document["plans"], [])
        self.assertGreater(document["nearest_miss"]["over_by_bytes"], 0)

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
