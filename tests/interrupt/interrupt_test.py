"""Every command under real signals at random moments: how soon it ends, with which status, what it has said and what it
leaves behind. Usage: interrupt_test.py BINARY SOURCE"""
import atexit
import concurrent.futures
import functools
import json
import os
import pathlib
import pty
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import jsonschema

BINARY = SOURCE = ""
# Signals for every command, at moments of its first seconds or, where it ends sooner, of its whole run. The whole
# promise, 20 over a minute each, takes half an hour: SCALECALC_INTERRUPT_EACH=20 SCALECALC_INTERRUPT_LATEST=60.
EACH = int(os.environ.get("SCALECALC_INTERRUPT_EACH", "2"))
LATEST = float(os.environ.get("SCALECALC_INTERRUPT_LATEST", "2"))
# Half a second is promised of a machine that has a core free; a test machine may have none.
LIMIT = float(os.environ.get("SCALECALC_INTERRUPT_LIMIT", "1.0"))
PARTIAL = "partial: interrupted; this is what was found until then"
NOTHING = "interrupted before anything was known"
CUT = "it is cut off"

STUDY = """command: roofline
arguments: [matmul, "{batch}x{d}x8192"]
axes:
  hw: [tpu-v5e, h100-sxm]
  batch: 1..200+1
  d: 512..25600+512
"""

LAUNCH_FILES = ("plan.json", "megatron.sh")

# Questions of each command, the long ones wherever it has any, and the schemas of their JSON.
QUESTIONS = {
    "train": [("train", "train deepseek-v3 --hw h100-sxm --chips 16384"),
              ("train", "train llama3.1-405b --hw h100-sxm --chips 8 --seq 131072"),  # nothing fits
              ("train-curve", "train mixtral-8x22b --hw h100-sxm --chips 512..65536*2")],
    "serve": [("serve", "serve llama3-70b --hw h100-sxm --prompt 256..4096 --generate 300 --rate 2000 "
                        "--simulate 300000")],
    "compare": [("compare", "compare llama3-70b --hw h100-sxm,tpu-v5p,tpu-v5e,h200 --deadline 60d --tokens 15T"),
                ("compare", "compare llama3-70b --serve --hw h100-sxm,tpu-v6e,h200 --chips 64")],
    "sensitivity": [("sensitivity", "sensitivity deepseek-v3 --hw h100-sxm --chips 2048"),
                    ("sensitivity-serve", "sensitivity serve deepseek-v3 --hw h200 --disaggregate auto")],
    "distill": [("distill", "distill llama3.1-8b --teacher llama3.1-70b --hw h100-sxm --chips 256 --tokens 100B")],
    "rl": [("rl", "rl llama3.1-8b --hw h100-sxm --chips 64 --prompt 512 --generate 1024..8192")],
    "scaling-law": [("scaling-law", "scaling-law deepseek-v3 --inference-tokens 10T --hw h100-sxm --chips 2048"),
                    ("scaling-law", "scaling-law --flops 1e24")],
    "trace": [("trace", "trace deepseek-v3 --hw h100-sxm --chips 4096")],
    "profile": [("profile", "profile recording.json --hw h100-sxm")],
    "collective": [("collective", "collective all-reduce --hw h100-sxm --group 2..1024*2 --bytes 1kB..1GB*1.2")],
    "matmul": [("matmul", "matmul A[I_X,J_Y]*B[J_Y,K_Z]*C[K_Z,L]*D[L,M_X]*E[M,N_Y]*F[N_Y,O]*G[O,P_Z]->T[I_X,P] "
                          "--hw tpu-v5p --mesh X=4,Y=4,Z=4 --dims I=1024,J=8192,K=8192,L=4096,M=4096,N=4096,O=2048,P=4096")],
    "roofline": [("roofline", "roofline matmul 512x8192x28672 --hw tpu-v5e --weight int8"),
                 ("roofline", "roofline matmul 8192x28672 --batch 1..1000+1 --hw tpu-v5e")],
    "bounds": [("bounds", "bounds llama3-70b --hw tpu-v5p --chips 8960"),
               ("bounds", "bounds llama3-70b --hw h100-sxm --chips 8 --for serving --batch 1..1000+1 --context 8192")],
    "model": [("model-design", "model design --hw h100-sxm --chips 1024 --deadline 30d --write design.yaml"),
              ("model", "model deepseek-v3 --seq 8192"), ("model", "model config.json")],
    "hw": [("hw", "hw h100-sxm"), ("hw-list", "hw list --since 2023 --sort matmul")],
    "validate": [("validate", "validate"), ("validate", "validate memory"), ("validate-serve", "validate serve")],
    "calibrate": [("calibrate", "calibrate --hw h100-sxm"), ("calibrate-serve", "calibrate serve --stack vllm")],
    "export": [("export", "export plan.json --to accelerate")],
    "book": [("book", "book --solve"), ("book", "book 5.2")],
    "lint": [("lint", "lint megatron.sh --hw h100-sxm --model llama3-8b")],
    "batch": [("", "batch study.yaml -o rows.jsonl"), ("", "batch study.yaml")],
}


def commands_of_help():
    text = subprocess.run([BINARY, "help"], capture_output=True, text=True, check=True).stdout
    listed = text[text.index("\ncommands:\n"):].split("\n\n")[0]
    return re.findall(r"^  ([a-z][a-z-]*) ", listed, re.M)


def without_time(document):
    """What no clock has a say in."""
    return re.sub(r'"elapsed_s": [^,\n}]*', '"elapsed_s": 0', document)


@functools.cache
def validator(name):
    file = SOURCE / "docs" / "schema" / f"{name}.schema.json"
    schema = json.loads(file.read_text())
    beside = jsonschema.RefResolver(base_uri=file.as_uri(), referrer=schema)  # schemas refer to each other
    return jsonschema.Draft7Validator(schema, resolver=beside)


@functools.cache
def recording():
    """A profiler's trace that takes a while to read."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="scalecalc-recording-"))
    atexit.register(shutil.rmtree, directory, True)
    megabytes = "100"
    subprocess.run([sys.executable, SOURCE / "tests" / "bench" / "profile_trace.py", directory / "trace.json", megabytes], check=True)
    return directory / "trace.json"


class Place:
    """A directory of its own, which is also that of temporary files."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="scalecalc-interrupt-"))
        (self.path / "study.yaml").write_text(STUDY, encoding="utf-8")
        shutil.copy(SOURCE / "tests" / "data" / "hf" / "llama-3.1-8b.json", self.path / "config.json")
        for name in LAUNCH_FILES:
            shutil.copy(SOURCE / "tests" / "data" / "launch" / name, self.path / name)
        (self.path / "recording.json").symlink_to(recording())

    def start(self, words, **streams):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen([BINARY, *words], cwd=self.path, stdin=subprocess.DEVNULL,
                                env={**os.environ, "TMPDIR": str(self.path)}, **streams)

    def files(self):
        return {p.name for p in self.path.iterdir()} - {"study.yaml", "config.json", "recording.json", *LAUNCH_FILES}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, True)


class Question:
    """A question of a command: how long it takes, and its whole answer in each format, both asked once."""

    def __init__(self, schema, text):
        self.schema, self.words = schema, text.split()
        self.seconds = LATEST
        self.answers, self.lock = {}, threading.Lock()

    def measure(self):
        with Place() as place:
            start = time.monotonic()
            process = place.start(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=LATEST)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.seconds = time.monotonic() - start

    def whole(self, form):
        with self.lock:
            if form not in self.answers:
                with Place() as place:
                    self.answers[form] = place.start([*self.words, "-o", form]).communicate()[0].decode()
            return self.answers[form]


class Case:
    """One question, one way to write its answer, one signal at one moment of its run."""

    def __init__(self, question, number, chance):
        self.question, self.words = question, question.words
        self.signal = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[number % 3]
        self.form = "table"
        if self.words[0] != "batch":
            self.form = chance.choice(["table", "json", "json=o.json", "csv", "csv=o.csv", "markdown"])
            self.words = [*self.words, "-o", self.form]
        self.after = chance.uniform(0, question.seconds)

    def __str__(self):
        return f"{' '.join(self.words)} [{self.signal.name} after {self.after:.3f} s]"

    def run(self):
        """Problems, and the seconds from the signal to the end; nothing if it had always ended before."""
        for _ in range(6):
            with Place() as place:
                process = place.start(self.words)
                time.sleep(self.after)
                if process.poll() is None:
                    return self.signalled(place, process)
                process.communicate()
            self.after /= 2  # what a machine beside less work answers sooner than when it was measured
        return [], None

    def signalled(self, place, process):
        sent = time.monotonic()
        process.send_signal(self.signal)
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return ["did not end in 30 s"], None
        took = time.monotonic() - sent
        return self.problems(place, process.returncode, out.decode(), err.decode(), took), took

    def problems(self, place, code, out, err, took):
        found = []
        left = place.files()
        if took > LIMIT:
            found.append(f"took {took:.2f} s")
        if code == -self.signal:  # before it could take signals
            return found + ([f"left {left}"] if left else []) + (["said something"] if out or err else [])
        # It had answered before the signal came.
        done = code in (0, 3) and took < 0.2
        if code != 128 + self.signal and not done:
            return found + [f"exit {code}: {err[-300:]}"]
        file = self.form.partition("=")[2]
        allowed = {file, "design.yaml", "rows.jsonl", "rows.jsonl.batch"}
        if left - allowed:
            found.append(f"left {left - allowed}")
        answer = (place.path / file).read_text() if file and file in left else out
        if file and file not in left and out and not out.startswith("{"):
            found.append(f"said {out[:100]!r} on standard output")
        if done:
            return found
        if CUT in err and took > 0.4 and not (file and file in left):  # there was no time left to write it
            return found
        if self.words[0] == "batch":
            return found + ([] if "interrupted" in err else [f"said {err!r}"])
        if NOTHING in err:
            if file in left and file:
                found.append("wrote a file of nothing")
            if self.form == "json":
                found += self.misfits("error", answer)
            elif answer:
                found.append(f"said {answer[:200]!r} of nothing")
            return found
        if self.form.startswith("json"):
            found += self.misfits(self.question.schema, answer)
        return found + self.unlabelled(answer, err)

    def unlabelled(self, answer, err):
        form = self.form.partition("=")[0]
        partial = {"json": '"partial": true' in answer, "csv": re.search(r",partial\n", answer) is not None}
        if partial.get(form, PARTIAL in answer):
            # Who reads no table is told on standard error.
            return [] if form in ("table", "markdown") or "=" in self.form or PARTIAL in err else ["says nothing on stderr"]
        # It stood when the signal came.
        if without_time(answer) != without_time(self.question.whole(form)):
            return ["differs from the whole answer, and is not labelled partial"]
        return []

    @staticmethod
    def misfits(schema, text):
        try:
            document = json.loads(text)
        except ValueError as error:
            return [f"no JSON: {error}: {text[:200]!r}"]
        for name, value in document.items():
            if isinstance(value, list):
                document[name] = value[:50] + value[-50:] if len(value) > 100 else value  # all alike
        return [f"against {schema}: {e.message[:300]}" for e in validator(schema).iter_errors(document)]


class Signals(unittest.TestCase):
    def test_the_table_names_every_command(self):
        self.assertEqual(set(QUESTIONS), set(commands_of_help()))

    def test_every_command_ends_soon_with_what_is_known(self):
        chance = random.Random(17)
        questions = {command: [Question(*asked) for asked in all_asked] for command, all_asked in QUESTIONS.items()}
        workers = 1 + len(os.sched_getaffinity(0))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:  # beside as many as later
            list(pool.map(Question.measure, [question for asked in questions.values() for question in asked]))
        cases = [Case(asked[number % len(asked)], number // len(asked), chance)
                 for asked in questions.values() for number in range(EACH)]
        chance.shuffle(cases)
        latencies, failures = {}, []
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for case, result in [(case, pool.submit(case.run)) for case in cases]:
                found, took = result.result()
                failures += [f"{case}: {problem}" for problem in found]
                if took is not None:
                    latencies.setdefault(case.words[0], []).append(took)
        for command, took in sorted(latencies.items()):
            longest = max(question.seconds for question in questions[command])
            print(f"{command:12} {len(took):3} signals over {longest:5.1f} s, median {sorted(took)[len(took) // 2]:.3f} s, "
                  f"longest {max(took):.3f} s", file=sys.stderr)
        self.assertFalse(failures, "\n" + "\n".join(failures))
        for command in QUESTIONS:
            self.assertGreater(len(latencies.get(command, [])), EACH // 4, f"{command} ended before its signals")


class Writing(unittest.TestCase):
    """Signals while an answer is written, and readers that go away."""

    LARGE = ["validate", "train", "-o", "json=o.json", "-o", "csv=o.csv", "--json"]

    def test_a_reader_that_does_not_read(self):
        for chosen in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU):
            with self.subTest(chosen), Place() as place:
                reading, writing = os.pipe()
                process = place.start(self.LARGE, stdout=writing)
                os.close(writing)
                while "o.csv" not in place.files():  # the answer is larger than the pipe
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                sent = time.monotonic()
                process.send_signal(chosen)
                _, err = process.communicate(timeout=30)
                self.assertLess(time.monotonic() - sent, LIMIT)
                os.close(reading)
                self.assertEqual(process.returncode, 128 + chosen)
                self.assertIn(CUT, err.decode())
                self.assertEqual(place.files(), {"o.json", "o.csv"})

    def test_files_are_whole_or_absent_whenever_the_signal_comes(self):
        chance = random.Random(3)
        with Place() as place:
            start = time.monotonic()
            place.start(["hw", "list", "-o", "json=o.json"]).communicate()
            each = time.monotonic() - start
        for number in range(40):
            with self.subTest(number), Place() as place:
                (place.path / "o.json").write_text("before")
                process = place.start(["hw", "list", "-o", "json=o.json"])
                time.sleep(chance.uniform(0, 1.2 * each))
                process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[number % 3])
                process.communicate(timeout=30)
                self.assertEqual(place.files(), {"o.json"})
                text = (place.path / "o.json").read_text()
                if text != "before":
                    json.loads(text)

    def test_nobody_at_the_terminal_is_no_end_under_nohup(self):
        with Place() as place:
            process = place.start(["calibrate", "serve", "--stack", "vllm", "-o", "json=o.json"],
                                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
            time.sleep(0.5)
            process.send_signal(signal.SIGHUP)
            time.sleep(1)
            self.assertIn(process.poll(), (None, 0))
            process.kill()
            process.communicate()

    def test_files_that_may_not_grow_are_absent(self):
        for limit in (0, 1, 4096, 65536):
            with self.subTest(limit), Place() as place:
                process = place.start(["hw", "list", "-o", "json=o.json"],
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                _, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 74, err)
                self.assertIn("File too large", err.decode())
                self.assertEqual(place.files(), set())

    def test_a_second_signal_ends_at_once(self):
        with Place() as place:
            process = place.start(["calibrate", "serve", "--stack", "vllm", "-o", "json=o.json"])
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)  # another signal: two of one kind may be one
            process.communicate(timeout=30)
            self.assertIn(process.returncode, (130, 143))
            self.assertEqual(place.files(), set())

    def test_a_reader_that_goes_away_is_no_failure(self):
        for words in (["validate", "train", "--json", "-o", "csv=o.csv"], ["hw", "list"], ["help"], ["batch", "study.yaml"]):
            with self.subTest(words), Place() as place:
                process = place.start(words)
                process.stdout.close()
                err = process.stderr.read().decode()
                self.assertEqual(process.wait(timeout=60), 0, err)
                self.assertNotIn("Broken pipe", err)
                self.assertLessEqual(place.files(), {"o.csv"})


class ProgressLine(unittest.TestCase):
    WORDS = ["rl", "llama3.1-8b", "--hw", "h100-sxm", "--chips", "64", "--prompt", "512", "--generate", "1024..8192"]

    def seen(self, words):
        """What a terminal behind standard error is shown before the answer's first byte, and altogether."""
        main, terminal = pty.openpty()
        with Place() as place:
            process = place.start(words, stderr=terminal)
            os.close(terminal)
            shown, before, streams = b"", None, [main, process.stdout]
            def read(stream):
                try:
                    return os.read(stream if stream == main else stream.fileno(), 65536)
                except OSError:  # what Linux says of a terminal whose last writer is gone
                    return b""

            while streams:
                ready = select.select(streams, [], [], 60)[0]
                for stream in sorted(ready, key=lambda one: one != main):  # what was shown before the answer, first
                    part = read(stream)
                    if not part:
                        streams.remove(stream)
                    elif stream == main:
                        shown += part
                    elif before is None:
                        shown += read(main) if main in streams and select.select([main], [], [], 0)[0] else b""
                        before = shown
            process.wait()
        os.close(main)
        return (before or b"").decode(), shown.decode()

    def test_it_comes_after_a_second_and_is_gone_before_the_answer(self):
        before, shown = self.seen(self.WORDS)
        self.assertRegex(before, r"\r\x1b\[K\d+ of \d+ splits of the chips \(\d+ %\), \d+ s")
        self.assertTrue(before.endswith("\r\x1b[K"), before[-200:])
        self.assertEqual(before, shown)

    def test_not_of_a_short_answer_nor_if_quiet(self):
        self.assertEqual(self.seen(["hw", "h100-sxm"])[1], "")
        self.assertEqual(self.seen([*self.WORDS, "--quiet"])[1], "")

    def test_not_into_a_pipe(self):
        with Place() as place:
            self.assertEqual(place.start(self.WORDS).communicate()[1], b"")


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where nohup runs the tests
    BINARY, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=["interrupt", *sys.argv[3:]], verbosity=1)
