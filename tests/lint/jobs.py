"""The ten jobs of docs/case-studies.md against the program: commands and tables are generated from tests/data/jobs.yaml
and the answers of the program. What is recommended must be a plan that the software named launches: asked for by its own
flags and that release, it is the answer; and what people run must be a layout of the search, and not beat the fastest.
Usage: jobs.py ROOT BINARY [--update]"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

MODEL_FILE = re.compile(r"^```yaml (mine/\S+)\n(.*?)^```$", re.M | re.S)


def answered(binary, words, folder):
    done = subprocess.run([binary, "train", *words, "--json", "--quiet"], capture_output=True, text=True, timeout=600,
                          check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"scalecalc train {shlex.join(words)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def layout_text(plan):
    layout = plan["layout"]
    parts = [f"{key} {layout[key]}" + ("+sp" if key == "tp" and layout["sp"] else "") +
             (f" {layout['cp_comm']}" if key == "cp" and layout["cp_comm"] != "all-gather" else "")
             for key in ("dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp") if layout[key] > 1]
    recipe = [f"mb {layout['micro_batch_seqs']} x {layout['grad_accum']}", f"remat {layout['remat']}",
              f"zero {layout['zero']}"]
    recipe += [layout["schedule"]] * (layout["schedule"] != "none")
    recipe += ["ep overlap"] * bool(layout["ep_overlap"])
    recipe += [f"offload {layout['offload']}"] * (layout["offload"] != "none")
    chips = f"{plan['chips']:,} chips: " if plan["idle_chips"] else ""
    return f"{chips}{', '.join(parts) or 'unsharded'}; {', '.join(recipe)}"


def row(name, plan, software, best):
    memory = plan["memory_bytes"]["total"] / plan["memory_bytes"]["capacity"]
    verdict = "" if plan["memory_verdict"] == "fits" else f" {plan['memory_verdict']}"
    behind = plan["step_time_s"] / plan["batch_tokens"] / (best["step_time_s"] / best["batch_tokens"]) - 1
    step = f"{plan['step_time_s']:.3g} s" if plan["step_time_s"] < 999.5 else f"{plan['step_time_s']:,.0f} s"
    return (f"| {name} | {layout_text(plan)} | {software} | {100 * memory:.0f}%{verdict} | {step} | "
            f"{100 * plan['mfu']:.1f}% | {100 * behind:+.1f}% |").replace("-0.0%", "+0.0%")


def section(job, binary, folder):
    words = shlex.split(job["ask"])
    document = answered(binary, words, folder)
    software, first = document["query"]["stack_release"], document["plans"][0]
    best = document["best"]["plan"]
    problems = []
    name, release = software.split()
    again = answered(binary, [*words, "--stack", f"{name}@{release}", "--fix", best["fix"]], folder)["plans"][0]
    if again["layout"] != best["layout"]:
        problems.append(f"{job['id']}: {software} does not launch what is recommended, {best['fix']}")
    rows = ["```sh", f"scalecalc train {job['ask']}", "```", "",
            "| plan | layout | software | memory | step | MFU | per token behind the fastest |", "|---|---|---|--:|--:|--:|--:|",
            row("recommended", best, software, first), row("fastest", first, software, first)]
    for run in job["runs"]:
        asked = answered(binary, [*words, *shlex.split(run.get("flags", "")), "--fix", run["fix"]], folder)
        plan, there = asked["plans"][0], asked["query"]["stack_release"] or "any"
        rows.append(row(run["name"], plan, there, first))
        same_space = there == software
        if same_space and plan["step_time_s"] / plan["batch_tokens"] < first["step_time_s"] / first["batch_tokens"]:
            problems.append(f"{job['id']}: {run['name']} beats the fastest plan")
    rows += [""] + [f"- {run['name']}: {run['source']}: `--fix {run['fix']}`" +
                    (f" with `{run['flags']}`" if "flags" in run else "") for run in job["runs"]]
    return rows, problems


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    text = wanted = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load((root / "tests/data/jobs.yaml").read_text(encoding="utf-8"))["jobs"]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name, content in MODEL_FILE.findall(text):
            file = pathlib.Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        for job in jobs:
            place = re.compile(rf"(<!-- {job['id']} -->\n).*?(<!-- /{job['id']} -->)", re.S)
            if not place.search(text):
                sys.exit(f"docs/case-studies.md has no place for {job['id']}")
            rows, wrong = section(job, binary, folder)
            problems += wrong
            wanted = place.sub(lambda m, rows=rows: m.group(1) + "\n".join(rows) + "\n" + m.group(2), wanted)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        problems.append("docs/case-studies.md is not what tests/lint/jobs.py --update would write")
    print("\n".join(problems) or f"{len(jobs)} jobs stand beside what people run")
    return 1 if problems else 0


sys.exit(main())
