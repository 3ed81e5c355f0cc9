"""The commit of the packages that ./dev package made, built again in another place and without a compiler cache: the same
bytes. A whole build, so it is asked for (./dev package --twice) and in no test. Usage: twice.py PACKAGES"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(sys.argv[1]).resolve()


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout


def main():
    if git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("twice.py: what is not committed would not be built again: commit it first")
    place = PACKAGES / "twice" / "another-place"
    shutil.rmtree(place.parent, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").strip()}

    def run(*words):
        subprocess.run(words, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
    run("cmake", "--preset", "packed", "-DCCACHE_PROGRAM=", f"-DSCALECALC_CHARTS_DIR={ROOT / 'build/charts'}")
    run("cmake", "--build", "--preset", "packed", "--target", "scalecalc_over_library", "scalecalc_older_glibc")
    run("src/cmake/pack", "build/packed", "build/package")
    first = sorted(p for pattern in ("scalecalc_*.deb", "scalecalc-*.tar.gz") for p in PACKAGES.glob(pattern))
    other = [p for p in first if p.read_bytes() != (place / "build/package" / p.name).read_bytes()]
    if len(first) != 2 or other:
        sys.exit(f"of {[p.name for p in first]} these have other bytes when built again: {[p.name for p in other]}")
    print("built again in another place, without a compiler cache: the same bytes, " + ", ".join(p.name for p in first))


main()
