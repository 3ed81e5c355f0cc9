"""The packages that ./dev package made: what is in them, that they run from where they were unpacked, which glibc they ask for,
that the C++ example builds against them and the Python module answers, and how large they are.
Usage: package_test.py PACKAGES"""
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from prefix import QUESTION, Prefix, run

PACKAGES = pathlib.Path(sys.argv[1]).resolve()
DEB, = PACKAGES.glob("scalecalc_*.deb")
TARBALL, = PACKAGES.glob("scalecalc-*.tar.gz")
MOST_BYTES = 16e6  # of the program and its library, stripped: 15.2e6 now, so that more than a twentieth is seen
OLDEST_GLIBC = (2, 31)


class Packages(Prefix, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.deb = pathlib.Path(cls.place.name) / "deb"
        subprocess.run(["dpkg-deb", "-x", DEB, cls.deb], check=True)
        with tarfile.open(TARBALL) as archive:
            archive.extractall(cls.place.name)
        cls.prefix, = pathlib.Path(cls.place.name).glob("scalecalc-*")
        cls.expected = run(cls.prefix / "bin/scalecalc", *QUESTION)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_what_is_in_the_deb(self):
        self.holds_files(self.deb / "usr")
        for root in (self.deb / "usr", self.prefix):
            self.assertTrue((root / "share/doc/scalecalc/LICENSE.vega").stat().st_size > 0)

    def test_dependencies_are_packages_of_debian(self):
        fields = run("dpkg-deb", "-f", DEB, "Depends", "Installed-Size", "Version").stdout
        for library in ("libc6", "libstdc++6", "libtbb12", "libsqlite3-0", "libyaml-cpp0.7"):
            self.assertIn(library, fields)

    def test_the_tarball_needs_nothing_of_the_system_but_glibc(self):
        needed = run("ldd", self.prefix / "bin/scalecalc").stdout
        for line in needed.splitlines():
            if "=>" in line and not any(word in line for word in ("libc.so", "libm.so", "libdl", "librt", "libpthread")):
                self.assertIn(str(self.prefix), line)

    def test_no_file_of_the_tarball_insists_on_a_newer_glibc(self):
        for file in (self.prefix / "bin/scalecalc", *self.prefix.rglob("*.so*")):
            if file.is_symlink():
                continue
            for version in re.findall(r"Name: GLIBC_([0-9.]+)\s+Flags:", run("readelf", "-V", "-W", file).stdout):
                self.assertLessEqual(tuple(map(int, version.split("."))), OLDEST_GLIBC, file)
            newer = [line for line in run("readelf", "--dyn-syms", "-W", file).stdout.splitlines()
                     for version in re.findall(r"UND \S+@GLIBC_([0-9.]+)", line)
                     if tuple(map(int, version.split("."))) > OLDEST_GLIBC]
            self.assertEqual(newer, [], file)

    def test_the_deb_gives_the_same_answer(self):
        library, = self.deb.rglob("libscalecalc.so.0")
        self.assertEqual(run(self.deb / "usr/bin/scalecalc", *QUESTION,
                             env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)}).stdout, self.expected.stdout)

    def test_size(self):
        size = sum(f.stat().st_size for f in (self.prefix / "bin/scalecalc", *self.prefix.rglob("libscalecalc.so.0.*")))
        print(f"program and its library {size / 1e6:.1f} MB stripped, .deb {DEB.stat().st_size / 1e6:.1f} MB, "
              f"tarball {TARBALL.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
        self.assertLess(size, MOST_BYTES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
