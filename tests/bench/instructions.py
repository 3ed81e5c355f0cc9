"""Instructions of each question of questions.py (cachegrind, on one core), against those recorded in instructions.txt.
Usage: instructions.py BINARY [--update] [QUESTION...]. Exits 1 where one grew by more than 3 %: a commit that does so
says why, and records the new figures with --update."""
import pathlib
import re
import subprocess
import sys

from questions import QUESTIONS, on_one_core, words

RECORDED = pathlib.Path(__file__).with_name("instructions.txt")
TOLERANCE = 0.03


def instructions(binary, question):
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    run = subprocess.run(on_one_core([*command, *words(binary, question)]), check=False, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)
    if run.returncode not in (0, 3) or not found:
        raise SystemExit(f"{QUESTIONS[question]}: {run.stderr[-2000:]}")
    return int(found[1].replace(",", ""))


def read():
    if not RECORDED.exists():
        return {}
    lines = [line.split() for line in RECORDED.read_text().splitlines() if line and not line.startswith("#")]
    return {name: int(count) for name, count in lines}


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    binary, *asked = [a for a in arguments if a != "--update"]
    recorded = read()
    grown = []
    for question in asked or QUESTIONS:
        count = instructions(binary, question)
        before = recorded.get(question)
        change = count / before - 1 if before else 0
        print(f"{question:<20} {count / 1e6:>10,.1f} M instructions" + (f" {change:+7.1%}" if before else ""), flush=True)
        if change > TOLERANCE:
            grown.append(question)
        recorded[question] = count
    if update:
        rows = "".join(f"{name} {recorded[name]}\n" for name in QUESTIONS if name in recorded)
        RECORDED.write_text("# Instructions of each question of questions.py; instructions.py BINARY --update writes them.\n" + rows)
    elif grown:
        raise SystemExit(f"more than {TOLERANCE:.0%} above what is recorded: {', '.join(grown)}")


main()
