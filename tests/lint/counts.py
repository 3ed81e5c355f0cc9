"""How many chips, models, measured runs, book cases the project has, wherever README and docs say so: the
numbers are counted here and not typed. --update writes them.

usage: counts.py SOURCE_DIR [--update]
"""
import pathlib
import re
import sys


def rows_of(path: pathlib.Path, key: str) -> int:
    """Entries of the list `key`, the last of the document, counted without reading 1,000 rows of YAML."""
    return len(re.findall(r"^\s*- ", path.read_text(encoding="utf-8").split(f"\n{key}:\n", 1)[-1], re.M))


def counted(root: pathlib.Path) -> dict[str, int]:
    chips = [p for p in (root / "configs/hardware").rglob("*.yaml") if p.parent.name != "book"]
    book = "".join(p.read_text(encoding="utf-8") for p in sorted((root / "configs/book").glob("*.yaml")))
    published = (root / "tests/data/published_runs.yaml").read_text(encoding="utf-8")
    measured = root / "configs/measurements"
    ids = re.compile(r"^\s*- (?:\{\s*)?id:", re.M)
    return {
        "chips and systems": len(chips),
        "models": len(list((root / "configs/models").rglob("*.yaml"))),
        "published runs": rows_of(measured / "train.yaml", "rows"),
        "published figures of serving": rows_of(measured / "serve.yaml", "rows"),
        "worked questions": len(ids.findall(book)),
        "figures of worked questions": len(re.findall(r"^\s*- (?:\{\s*)?at:", book, re.M)),
        "runs as run": len(ids.findall(published)),
    }


# What a document says, as a pattern whose group is the number, and what it counts.
SAID = [
    (r"\b([\d,]+) chips and systems\b(?!;)", "chips and systems"),
    (r"(?<=and )([\d,]+) models\b(?! of every)", "models"),
    (r"`model list` \(([\d,]+) models", "models"),
    (r"`scalecalc model list` shows the (\d+)", "models"),
    (r"\b([\d,]{3,}) published runs\b", "published runs"),
    (r"\b([\d,]+) published figures of serving\b", "published figures of serving"),
    (r"\b([\d,]+) worked questions\b", "worked questions"),
    (r"worked questions \(([\d,]+) figures\)", "figures of worked questions"),
    (r"case-studies\.md\]?\)?(?:\(docs/case-studies\.md\))? (\d+) of them in detail", "runs as run"),
    (r"sets ([\d,]+) runs with published layouts", "runs as run"),
]


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    counts = counted(root)
    problems, seen = [], set()
    for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if path.name == "CHANGELOG.md":  # says what there was
            continue
        text = wanted = path.read_text(encoding="utf-8")
        for pattern, what in SAID:
            number = f"{counts[what]:,}"

            def mend(match, number=number, what=what, text=text, path=path):
                seen.add(what)
                if match.group(1) != number:
                    line = text.count("\n", 0, match.start()) + 1
                    problems.append(f"{path.relative_to(root)}:{line}: {match.group(1)} {what}; there are {number}")
                return match.group(0).replace(match.group(1), number, 1)

            wanted = re.sub(pattern, mend, wanted)
        if "--update" in sys.argv and wanted != text:
            path.write_text(wanted, encoding="utf-8")
    problems += [f"no document says how many {what} there are; drop the pattern" for _, what in SAID if what not in seen]
    if "--update" in sys.argv:
        return 0
    print("\n".join(problems) or ", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return 1 if problems else 0


sys.exit(main())
