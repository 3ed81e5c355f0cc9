"""configs/splits.yaml against its own rule: every publication is in the half that the hash of its name says, in no other,
and the lists of the shipped sets are those of their files; and against the program: `validate --half` reads the rows that
the rule says. --update writes the lists of the shipped sets.

usage: splits.py SOURCE_DIR BINARY [--update]
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import yaml

HALVES = ("fit", "judge")
PREFIXES = ("https://", "http://", "www.", "github.com/", "huggingface.co/")
PART = re.compile(r"[a-z0-9][a-z0-9_.-]*")
SITE = re.compile(r"[a-z0-9][a-z0-9.-]*\.(com|org|net|ai|io|dev)")
PAPER = re.compile(r"arxiv(?::|\.org/)\D*([0-9.]+)")


def named_by(word, same):
    word = word.lstrip("([<\"'")
    for prefix in PREFIXES:
        word = word.removeprefix(prefix)
    if paper := PAPER.match(word):
        return "arxiv:" + paper[1].rstrip(".")
    mark = re.search("[#:]", word)
    if mark and word[:mark.start()] in same:
        return word[:mark.start()]
    word = re.split(r"[@:,;)\]#>?\"']", word)[0]
    parts = word.split("/")
    if len(parts) == 1:
        return word if SITE.fullmatch(word) else None
    if PART.fullmatch(parts[0]) and PART.fullmatch(parts[1]):
        return f"{parts[0]}/{parts[1]}".rstrip(".")
    return None


def publication(source, reference, group, same):
    """The rule of configs/splits.yaml."""
    text = (source + ("; " + reference if reference else "")).lower().replace("arxiv ", "arxiv:")
    if series := re.search(r", series ([a-z0-9_]+)", text):
        return "series/" + series[1]
    head, _, tail = text.partition("; ")
    for part in (tail, head):
        for word in part.split():
            if name := named_by(word, same):
                return same.get(name, name)
    name = " ".join((group or source).lower().split())
    return same.get(name, name)


def half_of(name, salt):
    return HALVES[hashlib.sha256(f"{salt}:{name}".encode()).hexdigest()[0] >= "8"]


def rows_of(document):
    """Row by row its id and the three texts that name its publication."""
    if isinstance(document, list):
        document = {"rows": document}
    sources, common = document.get("sources", {}), document.get("common", {})
    for row in document["rows"]:
        row = {**common, **row}
        source = str(row.get("source", ""))
        yield row["id"], sources.get(source, source), str(row.get("source_ref", "")), str(row.get("group", ""))


def divided(names, salt):
    return {half: sorted(n for n in names if half_of(n, salt) == half) for half in HALVES}


def read_by_program(root, binary, name, half):
    done = subprocess.run([binary, "validate", name, "--half", half, "--json"], cwd=root, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0 and f"in the {half} half" in done.stderr:
        return set()
    document = json.loads(done.stdout)
    return {row["id"] for row in document["rows"] + document["skipped_rows"]}


def written(sets):
    """The list of sets as it stands in the file."""
    lines = ["sets:"]
    for item in sets:
        lines.append(f"  - title: {json.dumps(item['title'])}")
        if "file" in item:
            lines.append(f"    file: {item['file']}")
        for half in HALVES:
            line = f"    {half}: ["
            for i, name in enumerate(item[half]):
                text = (", " if i else "") + (name if re.fullmatch(r"[a-z0-9][a-z0-9_./-]*", name) else json.dumps(name))
                if len(line) + len(text) > 118:
                    lines.append(line + ",")
                    line, text = "      ", text.removeprefix(", ")
                line += text
            lines.append(line + "]")
    return "\n".join(lines) + "\n"


def main():
    root, binary = pathlib.Path(sys.argv[1]), sys.argv[2]
    file = root / "configs" / "splits.yaml"
    text = file.read_text(encoding="utf-8")
    splits = yaml.safe_load(text)
    salt, same, sets = splits["salt"], splits["same"], {item["title"]: item for item in splits["sets"]}
    problems = [f"same: {name} leads to {same[name]}, which leads on" for name in same if same[name] in same]
    shipped = {}
    for path in sorted((root / "configs" / "measurements").glob("*.yaml")):
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        names = {row: publication(*rest, same) for row, *rest in rows_of(document)}
        lists = divided(set(names.values()), salt)
        shipped[path.stem] = names
        title = document["title"]
        found = {half: sets.get(title, {}).get(half, []) for half in HALVES}
        if found != lists:
            problems.append(f"{path.name}: its lists are {found} and must be {lists}: run splits.py --update")
        sets[title] = {"title": title, "file": f"measurements/{path.name}", **lists}
    if "--update" in sys.argv[3:]:
        file.write_text(text[:text.index("\nsets:\n") + 1] + written(sets.values()), encoding="utf-8")
        return
    everywhere = {}
    for item in sets.values():
        for half in HALVES:
            for name in item[half]:
                if half_of(name, salt) != half:
                    problems.append(f"{item['title']}: {name} is in the {half} half, and its hash says the other")
                if everywhere.setdefault(name, half) != half:
                    problems.append(f"{name} is in both halves")
    for name, rows in shipped.items():
        for half in HALVES:
            expected = {row for row, group in rows.items() if half_of(group, salt) == half}
            found = read_by_program(root, binary, name, half)
            if found != expected:
                problems.append(f"validate {name} --half {half} reads {len(found)} rows, and the rule says "
                                f"{len(expected)}; for example {sorted(found ^ expected)[:3]}")
    print("\n".join(problems) or f"{len(everywhere)} publications, each in the half that its hash says")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
