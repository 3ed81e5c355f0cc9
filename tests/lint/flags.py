"""docs/manual/ against the flags that the program has: `scalecalc COMMAND --help all` is printed from the command's table.
Usage: flags.py ROOT BINARY

On the page of a command
  every flag of the command is named, or on the page of train or serve if that is where it is from;
  every flag in the first column of a table is one of the command;
  words written there as `--flag a\\|b` are those of its help, where help lists them."""
import pathlib
import re
import subprocess
import sys

FLAG = re.compile(r"--[a-z][a-z0-9-]*")
HELP_LINE = re.compile(r"^ {2,6}(?:-\w, )?(--[a-z][a-z0-9-]*)(?: (\S+))?", re.M)
COMMON = "flags of every command:"


def first_columns(page):
    for line in page.splitlines():
        if line.startswith("|"):
            yield line.replace("\\|", "\0").split("|")[1].replace("\0", "|")


def words_of(cell):
    """(flag, [words]) of each `--flag a|b|c` in a table's cell."""
    for code in re.findall(r"`([^`]*)`", cell):
        found = re.fullmatch(r"(--[a-z][a-z0-9-]*) ([a-z0-9-]+(?:\|[a-z0-9-]+)+)", code)
        if found:
            yield found.group(1), found.group(2).split("|")


def main(root, binary):
    help_of = lambda *words: subprocess.run([binary, *words], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z-]+) +[A-Z]", help_of("--help").split("\ncommands:\n")[1], re.M)
    manual = {page.stem: page.read_text() for page in (pathlib.Path(root) / "docs/manual").glob("*.md")}
    problems = [f"no page for {command}" for command in commands if command not in manual]
    own, common = {}, {}
    for command in commands:
        head, tail = help_of(command, "--help", "all").split(COMMON)
        own[command] = dict(HELP_LINE.findall(head.split("\nflags:\n")[1]))
        common = dict(HELP_LINE.findall(tail))
    for command in commands:
        page = manual.get(command, "")
        named = set(FLAG.findall(page))
        for donor in ("train", "serve"):
            if re.search(rf"of\s+(\[{donor}\]|`{donor}`)", page):
                named |= set(FLAG.findall(manual[donor])) & set(own[donor])
        problems += [f"{command}: the manual does not name {flag}" for flag in own[command] if flag not in named]
        known = {**common, **own[command]}
        for cell in first_columns(page):
            problems += [f"{command}: the manual lists {flag}, which it has not"
                         for flag in FLAG.findall(cell) if flag not in known]
            for flag, words in words_of(cell):
                listed = known.get(flag, "")
                if "|" in listed and listed.islower() and listed.split("|") != words:
                    problems.append(f"{command}: {flag} takes {listed}, the manual says {'|'.join(words)}")
    for problem in problems:
        print(problem)
    print(f"{sum(map(len, own.values()))} flags of {len(commands)} commands, {len(problems)} problems")
    return 1 if problems or len(commands) < 15 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
