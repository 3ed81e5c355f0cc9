"""The RL steps of docs/case-studies.md against the program: tables and commands are generated from
tests/data/published_rl.yaml and the answers of the program. Usage: rl_studies.py ROOT BINARY [--update]"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

import yaml

PARTS = [("generation", ["generation"]), ("weights moved", ["weight_sync", "state_swap", "engine_sleep", "reference_weights"]),
         ("log-probabilities and reference", ["old_logprobs", "reference"]), ("updates", ["policy_update"]),
         ("waiting for the trainer", ["waiting"])]


def answered(binary, words):
    result = subprocess.run([binary, "rl", *words, "--json"], capture_output=True, check=False, timeout=300)
    if result.returncode != 0:
        sys.exit(f"scalecalc rl {shlex.join(words)}: exit {result.returncode}\n{result.stderr.decode()}")
    return json.loads(result.stdout)


def seconds(value):
    return f"{value:.3g} s" if value < 999.5 else f"{value:,.0f} s"


def section(runs, binary):
    asked = [shlex.split(f"{run['flags']} {run['lengths']}") for run in runs]
    rows = ["```sh", *(f"scalecalc rl {shlex.join(words)}" for words in asked), "```", "",
            "| run | chips | trainer as answered | published | ours | ours over published |", "|---|---|---|--:|--:|--:|"]
    answers = [answered(binary, words) for words in asked]
    for run, answer in zip(runs, answers):
        tokens = answer["query"]["prompt_tokens"] + answer["query"]["response_tokens"]
        if abs(tokens / run["mean"] - 1) > 0.005:
            sys.exit(f"{run['title']}: lengths have a mean of {tokens:.0f} tokens, the source prints {run['mean']}")
        plan = answer["plans"][0]
        chips = plan["generator_chips"]
        split = f"{chips} + {plan['trainer_chips']}" if plan["placement"] == "split" else f"{chips}"
        rows.append(f"| {run['title']} | {split} | {plan['trainer_layout']} | {seconds(run['published'])} | "
                    f"{seconds(plan['step_time_s'])} | {100 * (plan['step_time_s'] / run['published'] - 1):+.0f}% |")
    rows += ["", "Where our step goes:", "", "| run | " + " | ".join(name for name, _ in PARTS) + " |",
             "|---|" + "--:|" * len(PARTS)]
    for run, answer in zip(runs, answers):
        times = answer["step"]["time_s"]
        cells = [seconds(sum(times.get(key, 0) for key in keys)) for _, keys in PARTS]
        rows.append(f"| {run['title']} | " + " | ".join(cells) + " |")
    return rows


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    text = path.read_text(encoding="utf-8")
    place = re.compile(r"(<!-- nemo-rl -->\n).*?(<!-- /nemo-rl -->)", re.S)
    if not place.search(text):
        sys.exit("docs/case-studies.md has no place for nemo-rl")
    runs = yaml.safe_load((root / "tests/data/published_rl.yaml").read_text(encoding="utf-8"))["runs"]
    rows = section(runs, binary)
    wanted = place.sub(lambda m: m.group(1) + "\n".join(rows) + "\n" + m.group(2), text)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print("docs/case-studies.md is not what tests/lint/rl_studies.py --update would write")
        return 1
    print(f"{len(runs)} published RL steps stand beside their estimates")
    return 0


sys.exit(main())
