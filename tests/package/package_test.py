"""The packages that ./dev package made: what is in them, that they run from where they were unpacked, that the C++ example
builds against them and the Python module answers, and how large they are. Usage: package_test.py BUILD SOURCE"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
DEB, = BUILD.glob("scalecalc_*.deb")
TARBALL, = BUILD.glob("scalecalc-*.tar.gz")
MOST_BYTES = 15e6  # of the program and its library, stripped
QUESTION = ["train", "llama3-70b", "--hw", "h100-sxm", "--chips", "64", "--top", "1", "--json"]


def run(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, check=False, **more)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.deb = pathlib.Path(cls.place.name) / "deb"
        subprocess.run(["dpkg-deb", "-x", DEB, cls.deb], check=True)
        with tarfile.open(TARBALL) as archive:
            archive.extractall(cls.place.name)
        cls.tar, = pathlib.Path(cls.place.name).glob("scalecalc-*")
        cls.expected = run(cls.tar / "bin/scalecalc", *QUESTION)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_what_is_in_them(self):
        for root in (self.deb / "usr", self.tar):
            for path in ("bin/scalecalc", "share/man/man1/scalecalc.1", "share/man/man1/scalecalc-train.1", "include/scalecalc.hpp",
                         "share/bash-completion/completions/scalecalc", "share/zsh/site-functions/_scalecalc",
                         "share/fish/vendor_completions.d/scalecalc.fish", "share/doc/scalecalc/LICENSE",
                         "share/doc/scalecalc/LICENSE.vega", "share/scalecalc/schema/train.schema.json",
                         "share/scalecalc/schema/files/model.schema.json", "lib/python3/dist-packages/scalecalc.py"):
                found = list(root.glob(path)) + list(root.glob(path + ".gz"))
                self.assertTrue(found and found[0].stat().st_size > 0, (root, path))
            self.assertEqual([p for p in root.rglob("*.yaml") if "studies" not in p.parts], [], "is compiled in")

    def test_dependencies_are_packages_of_debian(self):
        fields = run("dpkg-deb", "-f", DEB, "Depends", "Installed-Size", "Version").stdout
        for library in ("libc6", "libstdc++6", "libtbb12", "libsqlite3-0", "libyaml-cpp0.7"):
            self.assertIn(library, fields)

    def test_the_tarball_runs_where_it_lies(self):
        self.assertEqual(self.expected.returncode, 0, self.expected.stderr)
        needed = run("ldd", self.tar / "bin/scalecalc").stdout
        for line in needed.splitlines():
            if "=>" in line and not any(word in line for word in ("libc.so", "libm.so", "libdl", "librt", "libpthread")):
                self.assertIn(str(self.tar), line)

    def test_the_deb_gives_the_same_answer(self):
        library, = self.deb.rglob("libscalecalc.so.0")
        self.assertEqual(run(self.deb / "usr/bin/scalecalc", *QUESTION,
                             env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)}).stdout, self.expected.stdout)

    def test_cmake_finds_it_and_the_example_answers(self):
        with tempfile.TemporaryDirectory() as build:
            made = run("cmake", "-S", SOURCE / "tests/package/example", "-B", build, f"-DCMAKE_PREFIX_PATH={self.tar}")
            self.assertEqual(made.returncode, 0, made.stderr)
            made = run("cmake", "--build", build)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            answer = run(pathlib.Path(build) / "plan")
            self.assertEqual(answer.stdout, self.expected.stdout, answer.stderr)

    def test_python_answers(self):
        program = ("import scalecalc, json\n"
                   "a = scalecalc.ask('train llama3-70b', hw='h100-sxm', chips=64, top=1)\n"
                   "try:\n  scalecalc.ask('train no-such-model', hw='h100-sxm', chips=64)\n  raise SystemExit('no error')\n"
                   "except scalecalc.Error as error:\n  assert error.status == 2 and 'no-such-model' in str(error), error\n"
                   "try:\n  scalecalc.ask('train llama3.1-405b', hw='a10g', chips=1)\n  raise SystemExit('it fits')\n"
                   "except scalecalc.NothingFits as error:\n  assert error.answer['plans'] == [], error.answer\n"
                   "try:\n  import pandas\n  f = scalecalc.frame('train llama3-70b', hw='h100-sxm', chips=64, top=3)\n"
                   "  assert len(f) == 3 and f.step_time_s.is_monotonic_increasing, f\n"
                   "except ImportError:\n  pass\n"
                   "print(json.dumps(a['plans'][0]['step_time_s']))\n")
        answer = run("/usr/bin/python3", "-c", program,
                     env={**os.environ, "PYTHONPATH": str(self.tar / "lib/python3/dist-packages")})
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(json.loads(answer.stdout), json.loads(self.expected.stdout)["plans"][0]["step_time_s"])

    def test_the_document_tells_what_works(self):
        program, = re.findall(r"^```python\n(.*?)^```", (SOURCE / "docs/api.md").read_text(), re.M | re.S)
        answer = run("/usr/bin/python3", "-c", program,
                     env={**os.environ, "PYTHONPATH": str(self.tar / "lib/python3/dist-packages")})
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len(answer.stdout.splitlines()), 3)

    def test_size(self):
        size = sum(f.stat().st_size for f in (self.tar / "bin/scalecalc", *self.tar.rglob("libscalecalc.so.0.*")))
        print(f"program and its library {size / 1e6:.1f} MB stripped, .deb {DEB.stat().st_size / 1e6:.1f} MB, "
              f"tarball {TARBALL.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
        self.assertLess(size, MOST_BYTES)

    def test_completion_knows_the_commands(self):
        script = (self.tar / "share/bash-completion/completions/scalecalc").read_text()
        self.assertIn("complete ", script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
