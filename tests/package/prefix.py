"""What must hold of a place where the program is installed, whatever put it there."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
QUESTION = ["train", "llama3-70b", "--hw", "h100-sxm", "--chips", "64", "--top", "1", "--json"]
FILES = ("bin/scalecalc", "share/man/man1/scalecalc.1", "share/man/man1/scalecalc-train.1", "include/scalecalc.h", "include/scalecalc.hpp",
         "share/bash-completion/completions/scalecalc", "share/zsh/site-functions/_scalecalc",
         "share/fish/vendor_completions.d/scalecalc.fish", "share/doc/scalecalc/LICENSE", "share/scalecalc/schema/train.schema.json",
         "share/scalecalc/schema/files/model.schema.json", "lib/python3/dist-packages/scalecalc.py")
PYTHON = """
import scalecalc, json
a = scalecalc.ask('train llama3-70b', hw='h100-sxm', chips=64, top=1)
try:
    scalecalc.ask('train no-such-model', hw='h100-sxm', chips=64)
    raise SystemExit('no error')
except scalecalc.Error as error:
    assert error.status == 2 and 'no-such-model' in str(error), error
    assert 'scalecalc model list' in str(error) and error.hints and error.hints[0] in str(error), error
    assert error.problems[0]['message'] in str(error), error.problems
try:
    scalecalc.ask('train llama3.1-405b', hw='a10g', chips=1)
    raise SystemExit('it fits')
except scalecalc.NothingFits as error:
    assert error.answer['plans'] == [], error.answer
status, output, messages = scalecalc.run('model llama3-8b' + chr(0) + 'x')
assert status == 2 and not output and 'NUL' in messages, (status, messages)
try:
    scalecalc.ask(['train', 'llama3-70b'], hw='h100-sxm' + chr(0) + 'x', chips=64)
    raise SystemExit('a word was cut')
except scalecalc.Error as error:
    assert 'NUL' in str(error), error
try:
    import pandas
    f = scalecalc.frame('train llama3-70b', hw='h100-sxm', chips=64, top=3)
    assert len(f) == 3 and f.step_time_s.is_monotonic_increasing, f
except ImportError:
    pass
print(json.dumps(a['plans'][0]['step_time_s']))
"""


def run(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, check=False, **more)


class Prefix:
    """Of a unittest.TestCase with `prefix`, where it is installed, and `expected`, what its program answers to QUESTION."""

    def python(self, program):
        answer = run("/usr/bin/python3", "-B", "-c", program,
                     env={**os.environ, "PYTHONPATH": str(self.prefix / "lib/python3/dist-packages")})
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def holds_files(self, root):
        for path in FILES:
            found = list(root.glob(path)) + list(root.glob(path + ".gz"))
            self.assertTrue(found and found[0].stat().st_size > 0, (root, path))
        self.assertEqual([p for p in root.rglob("*.yaml") if "studies" not in p.parts], [], "is compiled in")

    def test_what_others_wrote_is_named_with_its_licence(self):
        """SPDX 2.3: every required member, every library that is called, in dpkg's version."""
        documents = self.prefix / "share/doc/scalecalc"
        bill = json.loads((documents / "scalecalc.spdx.json").read_text())
        for member in ("SPDXID", "spdxVersion", "dataLicense", "name", "documentNamespace", "creationInfo"):
            self.assertTrue(bill[member], member)
        self.assertEqual((bill["spdxVersion"], bill["dataLicense"], bill["SPDXID"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertRegex(bill["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        packages = {p["SPDXID"]: p for p in bill["packages"]}
        self.assertEqual(len(packages), len(bill["packages"]))
        for identifier, package in packages.items():
            self.assertRegex(identifier, r"^SPDXRef-[A-Za-z0-9.-]+$")
            for member in ("name", "downloadLocation", "licenseDeclared"):
                self.assertTrue(package[member], package)
        related = set()
        for relationship in bill["relationships"]:
            self.assertIn(relationship["relationshipType"], ("DESCRIBES", "DYNAMIC_LINK", "STATIC_LINK", "CONTAINS"))
            related.add(relationship["relatedSpdxElement"])
        self.assertEqual(related, set(packages))
        versions = {p["name"]: p["versionInfo"] for p in bill["packages"]}
        notices = (documents / "NOTICES").read_text()
        for name, version in versions.items():
            if name != "scalecalc" and not name.startswith("vega"):
                self.assertEqual(run("dpkg-query", "-W", "-f=${Version}", name).stdout, version)
                self.assertIn(f"================ {name} {version} (", notices)
        library, = {p.resolve() for p in self.prefix.rglob("libscalecalc.so.0")}
        for name in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library).stdout):
            if re.match(r"ld-linux|libc[.]|libm[.]|libscalecalc", name):
                continue
            owners = {line.split(":")[0] for line in run("dpkg", "-S", f"*/{name}").stdout.splitlines()}
            self.assertTrue(owners & set(versions), (name, owners))
        for text in ("GNU LESSER GENERAL PUBLIC LICENSE", "Apache License", "Luksan"):
            self.assertIn(text, notices)
        if (documents / "LICENSE.vega").exists():
            self.assertIn("Mike Bostock", notices)
            self.assertIn("vega", versions)

    def test_what_is_in_it(self):
        self.holds_files(self.prefix)

    def test_it_answers(self):
        self.assertEqual(self.expected.returncode, 0, self.expected.stderr)
        self.assertEqual(json.loads(self.expected.stdout)["schema"], "scalecalc/train/1")

    def test_cmake_finds_it_and_the_example_answers(self):
        with tempfile.TemporaryDirectory() as build:
            made = run("cmake", "-S", SOURCE / "tests/package/example", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
            self.assertEqual(made.returncode, 0, made.stderr)
            made = run("cmake", "--build", build)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            answer = run(pathlib.Path(build) / "plan")
            self.assertEqual(answer.stdout, self.expected.stdout, answer.stderr)

    def test_python_answers(self):
        self.assertEqual(json.loads(self.python(PYTHON)), json.loads(self.expected.stdout)["plans"][0]["step_time_s"])

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is missing")
    def test_the_document_tells_what_works(self):
        program, = re.findall(r"^```python\n(.*?)^```", (SOURCE / "docs/api.md").read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(len(self.python(program).splitlines()), 3)

    def test_completion_knows_the_commands(self):
        script = (self.prefix / "share/bash-completion/completions/scalecalc").read_text(encoding="utf-8")
        self.assertIn("complete ", script)
