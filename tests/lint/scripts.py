"""The scripts of the documents against the program: every ```sh block of DOCUMENTS is run as it stands, in an empty
directory, with the program on the path. Usage: scripts.py ROOT BINARY

Files that a block reads stand in ```yaml PATH blocks of the document. A first line "# exit 1" says how the block ends
(without one it ends well), a first line "# prints REGEX" what its output holds; every other block prints something."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCUMENTS = ("howto/scripts.md", "howto/calibrate.md", "howto/studies.md", "manual/README.md")
# Whose ```sh blocks another test runs.
ELSEWHERE = {"case-studies.md": "lint.case_studies, lint.run_stories"}
FENCE = re.compile(r"^```(\S*)[ \t]*(\S*)[^\n]*\n(.*?)^```[ \t]*$", re.M | re.S)


def wanted(block, word, usual):
    found = re.search(rf"^# {word} (.*)$", block, re.M)
    return found.group(1) if found else usual


def forgotten(docs):
    for page in sorted(docs.rglob("*.md")):
        name = str(page.relative_to(docs))
        if name not in DOCUMENTS and name not in ELSEWHERE and any(kind == "sh" and not path for kind, path, _ in
                                                                   FENCE.findall(page.read_text(encoding="utf-8"))):
            yield f"docs/{name}: its ```sh blocks are run by no test (DOCUMENTS of tests/lint/scripts.py)"


def python_with_pandas():
    """The interpreter that Debian's python3-pandas is of, wherever another stands before it; None if there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import pandas"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def main(root, binary):
    docs = pathlib.Path(root) / "docs"
    if shutil.which("jq") is None:
        print("jq is not installed: the recipes are not run")
        return 0
    with tempfile.TemporaryDirectory() as tools:
        os.symlink(os.path.abspath(binary), f"{tools}/scalecalc")
        python = python_with_pandas()
        if python:
            os.symlink(python, f"{tools}/python3")
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": "summary.md"}
        problems = list(forgotten(docs))
        blocks = []
        for document in DOCUMENTS:
            found = FENCE.findall((docs / document).read_text(encoding="utf-8"))
            files = [(path, content) for kind, path, content in found if kind == "yaml" and path]
            blocks += [(block, files) for kind, path, block in found if kind == "sh" and not path]
        for block, files in blocks:
            if "pandas" in block and not python:
                print("python3-pandas is not installed: a script of frames is not run")
                continue
            with tempfile.TemporaryDirectory() as place:
                for path, content in files:
                    (pathlib.Path(place) / path).parent.mkdir(parents=True, exist_ok=True)
                    (pathlib.Path(place) / path).write_text(content)
                run = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=place, env=environment, text=True,
                                     capture_output=True, check=False)
            right = run.returncode == int(wanted(block, "exit", 0))
            right = right and re.search(wanted(block, "prints", r"\S"), run.stdout + run.stderr)
            if not right:
                problems.append(f"{block}exit {run.returncode}\n{run.stdout}{run.stderr}")
    for problem in problems:
        print(problem)
    jq = sum("jq" in block for block, _ in blocks)
    print(f"{jq} recipes with jq, {len(blocks) - jq} for CI, {len(problems)} problems")
    return 1 if problems or jq < 10 or len(blocks) - jq < 10 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
