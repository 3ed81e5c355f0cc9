"""cmake --install of a build into an empty place: what is there, that it runs, that the C++ example finds it and answers, and
the Python module. Usage: installed_test.py BUILD"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from prefix import QUESTION, Prefix, run

BUILD = sys.argv[1]


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
