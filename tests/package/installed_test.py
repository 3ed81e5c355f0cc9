"""cmake --install of a build into an empty place: what is there, that it runs, that the C++ example finds it and answers, and
the Python module. Usage: installed_test.py BUILD"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from prefix import QUESTION, SOURCE, Prefix, run

BUILD = pathlib.Path(sys.argv[1])


class Installed(Prefix, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.place.name) / "prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)
        cls.expected = run(cls.prefix / "bin/scalecalc", *QUESTION)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_glibc_2_31_or_the_tarball_has_what_is_asked_of_it(self):
        """As src/cmake/tarball.cmake asks, of copies, which it changes."""
        files = [shutil.copy(BUILD / built, self.place.name) for built in ("libscalecalc.so", "scalecalc")]
        subprocess.run([sys.executable, "-B", SOURCE / "src/cmake/older_glibc.py", BUILD / "libscalecalc_older_glibc.so", *files],
                       check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
