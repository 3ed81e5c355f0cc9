"""docs/howto/scripts.md against the program: every ```sh block is run as it stands, in an empty directory, with the
program on the path. Usage: scripts.py ROOT BINARY

Files that a block reads stand in ```yaml PATH blocks of the document. A first line "# exit 1" says how the block ends
(without one it ends well), a first line "# prints REGEX" what its output holds; every other block prints something."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\S*)[ \t]*(\S*)[^\n]*\n(.*?)^```[ \t]*$", re.M | re.S)


def wanted(block, word, usual):
    found = re.search(rf"^# {word} (.*)$", block, re.M)
    return found.group(1) if found else usual


def main(root, binary):
    text = (pathlib.Path(root) / "docs/howto/scripts.md").read_text()
    if shutil.which("jq") is None:
        print("jq is not installed: the recipes are not run")
        return 0
    with tempfile.TemporaryDirectory() as tools:
        os.symlink(os.path.abspath(binary), f"{tools}/scalecalc")
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": "summary.md"}
        files = [(path, content) for kind, path, content in FENCE.findall(text) if kind == "yaml" and path]
        blocks = [content for kind, _, content in FENCE.findall(text) if kind == "sh"]
        problems = 0
        for block in blocks:
            with tempfile.TemporaryDirectory() as place:
                for path, content in files:
                    (pathlib.Path(place) / path).write_text(content)
                run = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=place, env=environment, text=True,
                                     capture_output=True, check=False)
            right = run.returncode == int(wanted(block, "exit", 0))
            right = right and re.search(wanted(block, "prints", r"\S"), run.stdout + run.stderr)
            if not right:
                problems += 1
                print(f"{block}exit {run.returncode}\n{run.stdout}{run.stderr}")
    jq = sum("jq" in block for block in blocks)
    print(f"{jq} recipes with jq, {len(blocks) - jq} for CI, {problems} problems")
    return 1 if problems or jq < 10 or len(blocks) - jq < 10 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
