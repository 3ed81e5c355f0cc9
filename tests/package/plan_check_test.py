"""The check of plans in other people's CI (.github/actions/plan-check): holds, fails by an expectation, fails against a
baseline. Usage: plan_check_test.py BINARY SOURCE"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

BINARY, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
ACTION = SOURCE / ".github" / "actions" / "plan-check"


def check(directory, *words):
    summary = directory / "summary.md"
    result = subprocess.run(["sh", ACTION / "check.sh", *words], capture_output=True, text=True, cwd=directory, timeout=120,
                            env={**os.environ, "SCALECALC": BINARY, "GITHUB_STEP_SUMMARY": str(summary)}, check=False)
    return result.returncode, result.stdout + result.stderr


def installs_what_was_asked_for():
    """With an installer that writes down what it would install: nothing unless the sum is the package's."""
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        package = directory / "some.deb"
        package.write_bytes(b"a package")
        apt = directory / "apt"
        apt.write_text('#!/bin/sh\nfor word; do case "$word" in *.deb) cp "$word" "$(dirname "$0")/installed" ;; esac; done\n')
        apt.chmod(0o755)
        (directory / "sudo").symlink_to("/usr/bin/env")
        right = hashlib.sha256(b"a package").hexdigest()
        environment = {**os.environ, "APT": str(apt), "PATH": f"{directory}:{os.environ['PATH']}"}

        def install(what, total):
            return subprocess.run(["sh", ACTION / "install.sh", what, total], capture_output=True, text=True, timeout=60,
                                  env=environment, check=False)

        for what, total in ((package, "0" * 64), (package, ""), (package, right[:-1]), (package, "x" * 64),
                            ("http://127.0.0.1:1/some.deb", right), ("https://127.0.0.1:1/some.deb", right)):
            failed = install(what, total)
            assert failed.returncode != 0 and failed.stderr, (what, total, failed)
            assert not (directory / "installed").exists(), (what, total)
        done = install(package, right.upper())
        assert done.returncode == 0, done
        assert (directory / "installed").read_bytes() == b"a package"


def main():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    assert {"package", "sha256", "study", "expect", "baseline", "tolerance"} == set(action["inputs"]), action["inputs"]
    for step in action["runs"]["steps"]:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a@" + 40 * "0")), step
    installs_what_was_asked_for()
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        (directory / "plans.yaml").write_text("command: train\narguments: [llama3-8b]\nflags: {hw: h100-sxm, tokens: 1T, top: 1}\n"
                                              "axes: {chips: [16, 32]}\n")
        (directory / "expected.yaml").write_text("status: ok\nmfu: {least: 0.01}\n")
        status, said = check(directory, "plans.yaml", "expected.yaml")
        assert status == 0, said
        rows = (directory / "plans-checked.jsonl").read_text()
        assert rows.count("\n") == 2 and (directory / "plans-checked.html").stat().st_size > 1000
        (directory / "before.jsonl").write_text(rows)
        status, said = check(directory, "plans.yaml", "expected.yaml", "before.jsonl", "2%")
        assert status == 0 and "0 differences" in said, said
        (directory / "expected.yaml").write_text("mfu: {least: 0.99}\n")
        status, said = check(directory, "plans.yaml", "expected.yaml")
        assert status == 1 and "mfu at least 0.99" in said, said
        faster = rows.replace('"mfu":0.', '"mfu":0.9')
        assert faster != rows
        (directory / "before.jsonl").write_text(faster)
        status, said = check(directory, "plans.yaml", "", "before.jsonl")
        assert status == 1 and "2 differences for the worse" in said, said
        assert "2 differences" in (directory / "summary.md").read_text()
        slower = rows.replace('"step_time_s":', '"step_time_s":9')  # ours is the better one
        assert slower != rows
        (directory / "before.jsonl").write_text(slower)
        status, said = check(directory, "plans.yaml", "", "before.jsonl")
        assert status == 0 and "0 differences for the worse" in said, said
        status, said = check(directory, "no-such-study.yaml")
        assert status == 2, said
    print("the check of plans holds, and fails where it must")


main()
