"""The whole runs of docs/case-studies.md against the program: their tables and commands are generated from
tests/data/run_stories.yaml and the answers of the program. Usage: run_stories.py ROOT BINARY [--update]"""
import pathlib
import re
import shlex
import sys

import yaml

import published_runs as runs


def number(value, unit):
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def at(plan, path):
    for key in path.split("."):
        plan = plan[key]
    return plan


def ours(figure, plans):
    plan = plans[figure.get("ask", 0)]
    value = at(plan, figure["ours"]) * figure.get("times", 1)
    return value / at(plan, figure["over"]) if "over" in figure else value


def row(figure, plans):
    here, unit = ours(figure, plans), figure["unit"]
    if "text" in figure:
        return f"| {figure['name']} | {figure['text']} | {number(here, unit)} | |"
    there = figure["published"]
    return f"| {figure['name']} | {number(there, unit)} | {number(here, unit)} | {100 * (here / there - 1):+.0f}% |"


def table(story, binary):
    asks = [shlex.split(story["asks"][0])]
    asks += [asks[0] + shlex.split(more) for more in story["asks"][1:]]
    plans = []
    for words in asks:
        status, document = runs.answer(binary, words, 1)
        if status != 0:
            sys.exit(f"scalecalc {shlex.join(words)}: exit {status}")
        plans.append(document["plans"][0])
    return ["```sh", *(f"scalecalc {shlex.join(words)}" for words in asks), "```", "",
            "| figure | published | ours | ours over published |", "|---|--:|--:|--:|",
            *(row(figure, plans) for figure in story["figures"]), "", f"Source: {' '.join(story['source'].split())}."]


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    text = wanted = path.read_text(encoding="utf-8")
    stories = yaml.safe_load((root / "tests/data/run_stories.yaml").read_text(encoding="utf-8"))["stories"]
    for story in stories:
        place = re.compile(rf"(<!-- {story['id']} -->\n).*?(<!-- /{story['id']} -->)", re.S)
        if not place.search(text):
            sys.exit(f"docs/case-studies.md has no place for {story['id']}")
        rows = table(story, binary)
        wanted = place.sub(lambda m, rows=rows: m.group(1) + "\n".join(rows) + "\n" + m.group(2), wanted)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print("docs/case-studies.md is not what tests/lint/run_stories.py --update would write")
        return 1
    print(f"{len(stories)} published runs stand beside what we make of them")
    return 0


sys.exit(main())
