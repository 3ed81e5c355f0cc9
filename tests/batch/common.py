"""What the tests of `scalecalc batch` share: the binary, a directory, a study of some thousand questions and its hash."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BINARY = ""
SOURCE = pathlib.Path(__file__).resolve().parents[2]

def study(cases):
    """Roofline questions, 100 for each batch."""
    return f"""command: roofline
arguments: [matmul, "{{batch}}x{{d}}x8192"]
axes:
  hw: [tpu-v5e, h100-sxm]
  batch: 1..{cases // 100}+1
  d: 512..25600+512
"""


def fits(document, name):
    """Raises unless the document is as docs/schema says."""
    import jsonschema
    file = SOURCE / "docs" / "schema" / f"{name}.schema.json"
    schema = json.loads(file.read_text())
    beside = jsonschema.RefResolver(base_uri=file.as_uri(), referrer=schema)  # schemas refer to each other
    jsonschema.validate(document, schema, resolver=beside)


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class BatchTest(unittest.TestCase):
    CASES = 2_500  # of large.yaml, 2 MB of rows: enough for a process to be killed at work

    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="scalecalc-batch-"))
        self.addCleanup(shutil.rmtree, self.place, True)
        self.put("large.yaml", study(self.CASES))

    def put(self, name, text):
        path = self.place / name
        path.write_text(text, encoding="utf-8")
        return path

    def run_it(self, *args, code=0, **kwargs):
        """Standard output of the program, run in the test's directory."""
        done = subprocess.run([BINARY, *map(str, args)], cwd=self.place, capture_output=True, text=True, timeout=300,
                              check=False, **kwargs)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        self.said = done.stderr
        return done.stdout

    def whole(self, study="large.yaml"):
        """Hash of the results of one process."""
        self.run_it("batch", study, "-o", "whole.jsonl")
        return sha256(self.place / "whole.jsonl")

    def environment(self, **more):
        """With the binary under its name on the path."""
        link = self.place / "bin"
        link.mkdir(exist_ok=True)
        if not (link / "scalecalc").exists():
            (link / "scalecalc").symlink_to(BINARY)
        return {**os.environ, "PATH": f"{link}:{os.environ['PATH']}", **more}


def main(binary):
    global BINARY
    BINARY = os.path.abspath(binary)
    unittest.main(module="__main__", argv=["batch"], verbosity=1)
