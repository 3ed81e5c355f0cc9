"""The published serving of docs/case-studies.md against the program: its table and commands are generated from
tests/data/published_serving.yaml and the answers of the program. Usage: serve_studies.py ROOT BINARY [--update]"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

import yaml

CAUSES = ["compute", "weights", "kv", "activations", "collectives", "pipeline", "overhead"]


def answered(binary, words):
    result = subprocess.run([binary, "serve", *words, "--json"], capture_output=True, check=False, timeout=300)
    if result.returncode != 0:
        sys.exit(f"scalecalc serve {shlex.join(words)}: exit {result.returncode}\n{result.stderr.decode()}")
    return json.loads(result.stdout)


def ours(run, answer):
    best = answer["best"]
    if run["figure"] == "prompt_tokens_per_s":
        value = best["requests_per_s"] * answer["query"]["prompt"]
    else:
        value = best[run["figure"]]
    return value * run.get("per", best["chips"]) / best["chips"] if run["figure"].endswith("per_s") else value


def text(run, value):
    return f"{value:,.0f} tokens/s" if run["figure"].endswith("per_s") else f"{1000 * value:.3g} ms"


def slower(run, value):
    """How much longer ours takes: of a rate its inverse."""
    ratio = run["published"] / value if run["figure"].endswith("per_s") else value / run["published"]
    return f"{100 * (ratio - 1):+.0f}%"


def section(runs, binary):
    asked = [shlex.split(run["flags"]) for run in runs]
    rows = ["```sh", *dict.fromkeys(f"scalecalc serve {shlex.join(words)}" for words in asked), "```", "",
            "| deployment | sequences | published | ours | our time over published |", "|---|--:|--:|--:|--:|"]
    answers = [answered(binary, words) for words in asked]
    for run, answer in zip(runs, answers):
        value = ours(run, answer)
        rows.append(f"| {run['title']} | {answer['best']['batch']:,.0f} | {text(run, run['published'])} | {text(run, value)} | "
                    f"{slower(run, value)} |")
    rows += ["", "Where our decode steps go:", "", "| deployment | " + " | ".join(CAUSES) + " |",
             "|---|" + "--:|" * len(CAUSES)]
    for run, answer in zip(runs, answers):
        if run["figure"] == "prompt_tokens_per_s":
            continue
        times = answer["best"]["time_s"]
        total = sum(times.values())
        rows.append(f"| {run['title']} | " + " | ".join(f"{100 * times[cause] / total:.0f}%" for cause in CAUSES) + " |")
    return rows


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    document = path.read_text(encoding="utf-8")
    place = re.compile(r"(<!-- serving -->\n).*?(<!-- /serving -->)", re.S)
    if not place.search(document):
        sys.exit("docs/case-studies.md has no place for serving")
    runs = yaml.safe_load((root / "tests/data/published_serving.yaml").read_text(encoding="utf-8"))["runs"]
    rows = section(runs, binary)
    wanted = place.sub(lambda m: m.group(1) + "\n".join(rows) + "\n" + m.group(2), document)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != document:
        print("docs/case-studies.md is not what tests/lint/serve_studies.py --update would write")
        return 1
    print(f"{len(runs)} published figures of serving stand beside ours")
    return 0


sys.exit(main())
