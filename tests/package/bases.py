"""The packages in bare systems: Debian 12 takes the .deb as the action for others' CI installs it (.github/actions/plan-check),
whose check then runs there, and a newcomer's first ten minutes are timed; Debian 11 (glibc 2.31) and 13 (2.41) take the tarball. Needs root, debootstrap and
Debian's archive; the systems stay in PACKAGES/bases for the next time. Usage: bases.py PACKAGES"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(sys.argv[1]).resolve()
DEB, = PACKAGES.glob("scalecalc_*.deb")
TARBALL, = PACKAGES.glob("scalecalc-*.tar.gz")
PLAN = "train llama3-8b --hw h100-sxm --chips 64"
TEN_MINUTES = (
    ("a plan, what it costs, what binds it", f"scalecalc {PLAN}"),
    ("the same as a page, for a browser", f"scalecalc {PLAN} -o html=report.html"),
    ("the plan as the script that launches it", f"scalecalc {PLAN} --export megatron:plan.sh --cluster slurm"),
    ("what in your own script is slow or will not run", "scalecalc lint own.sh --hw h100-sxm --model llama3-8b"),
    ("what the plan depends on", "scalecalc sensitivity llama3-8b --hw h100-sxm --chips 64"),
    ("how a command is used", "scalecalc help train"),
)


def base(suite):
    root = PACKAGES / "bases" / suite
    if not (root / "etc/debian_version").exists():
        print(f"a bare {suite}", flush=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite, root], check=True, stdout=subprocess.DEVNULL)
    return root


def inside(root, command):
    start = time.monotonic()
    # With /proc, by which the loader knows where a program lies.
    enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -c "cd /root && $1"'
    made = subprocess.run(["unshare", "--mount", "sh", "-c", enter, root, command], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"})
    seconds = time.monotonic() - start
    if made.returncode:
        sys.exit(f"{root.name}: {command}: exit {made.returncode}\n{made.stdout}{made.stderr}")
    return made.stdout, seconds


def tarball(suite, expected):
    root = base(suite)
    shutil.rmtree(root / "opt/scalecalc", ignore_errors=True)
    (root / "opt/scalecalc").mkdir(parents=True)
    subprocess.run(["tar", "-xzf", TARBALL, "-C", root / "opt/scalecalc", "--strip-components=1"], check=True)
    glibc = inside(root, "ldd --version | sed -n 1p")[0].split()[-1]
    answer = inside(root, f"/opt/scalecalc/bin/scalecalc {PLAN}")[0]
    if answer != expected:
        sys.exit(f"{suite}: another answer than Debian 12's:\n{answer}")
    # Threads, files, an exception that passes libraries, the database.
    inside(root, "/opt/scalecalc/bin/scalecalc sensitivity llama3-8b --hw h100-sxm --chips 64 -o json=s.json && test -s s.json")
    inside(root, "/opt/scalecalc/bin/scalecalc train no-such-model --hw h100-sxm --chips 8 2>said; test $? = 2 && grep -q no-such-model said")
    (root / "root/study.yaml").write_text("command: train\narguments: [llama3-8b]\nflags: {hw: h100-sxm, top: 1}\n"
                                          "axes: {chips: [64, 128]}\n", encoding="utf-8")
    inside(root, "/opt/scalecalc/bin/scalecalc batch study.yaml -o jsonl=rows.jsonl -o sqlite=rows.db && test -s rows.jsonl -a -s rows.db")
    print(f"{suite}, glibc {glibc}: the tarball answers as the .deb does")


def plan_check(root):
    """docs/howto/ci.md with the installed program: a check that passes, and one whose baseline was better."""
    shutil.copy(ROOT / ".github/actions/plan-check/check.sh", root / "root")
    page = (ROOT / "docs/howto/ci.md").read_text(encoding="utf-8")
    for name in ("plans.yaml", "expected.yaml"):
        (root / "root" / name).write_text(re.search(rf"^```yaml {name}\n(.*?)^```", page, re.M | re.S)[1], encoding="utf-8")
    _, seconds = inside(root, "sh check.sh plans.yaml expected.yaml && cp plans-checked.jsonl before.jsonl")
    inside(root, "sh check.sh plans.yaml expected.yaml before.jsonl 2%")
    inside(root, r"""sed -E 's/"step_time_s": ?[0-9.e+-]+/"step_time_s": 0.001/' before.jsonl > better.jsonl
                     sh check.sh plans.yaml expected.yaml better.jsonl 2%; test $? = 1""")
    print(f"bookworm: the check of plans passes in {seconds:.2f} s, and fails where the baseline was better")


def main():
    root = base("bookworm")
    shutil.copy(DEB, root / "root")
    page = (ROOT / "docs/howto/install.md").read_text(encoding="utf-8")
    (root / "root/own.sh").write_text(re.search(r"^```sh own.sh\n(.*?)^```", page, re.M | re.S)[1], encoding="utf-8")
    inside(root, "apt-get purge -y -qq --auto-remove scalecalc 2>/dev/null; apt-get clean")
    action = yaml.safe_load((ROOT / ".github/actions/plan-check/action.yml").read_text(encoding="utf-8"))
    shutil.copy(ROOT / ".github/actions/plan-check/install.sh", root / "root")
    (root / "root/step.sh").write_text(action["runs"]["steps"][0]["run"], encoding="utf-8")
    asked = f"GITHUB_ACTION_PATH=/root PACKAGE=/root/{DEB.name} SHA256={hashlib.sha256(DEB.read_bytes()).hexdigest()}"
    _, seconds = inside(root, f"{asked} bash -euo pipefail step.sh")
    print(f"bookworm: the action installs {DEB.name}: {seconds:.1f} s with the download of its libraries")
    inside(root, "apt-get purge -y -qq scalecalc")
    _, seconds = inside(root, f"apt-get install -y -qq --no-install-recommends ./{DEB.name}")
    print(f"bookworm: apt-get install ./{DEB.name}: {seconds:.1f} s where they are there")
    plan_check(root)
    for what, command in TEN_MINUTES:
        said, seconds = inside(root, command)
        print(f"{seconds:5.2f} s  {what}: {command}")
        if command == f"scalecalc {PLAN}":
            expected = said
    for suite in ("bullseye", "trixie"):
        tarball(suite, expected)


main()
