"""The shipped catalog: every figure block names its source, every source tag is defined and used, what is quoted from
memory says so, and names and files agree. Figures are held against data sheets by tests/unit/spec/datasheet_test.cpp."""
import pathlib
import re
import sys

import yaml


def tags(node, found):
    """All tags cited anywhere in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "source" and isinstance(value, list):
                found.update(value)
            elif key != "sources":
                tags(value, found)
    elif isinstance(node, list):
        for item in node:
            tags(item, found)


def plain(name: str) -> str:
    """A name as the catalog compares it."""
    return re.sub(r"[-_ ]", "", name.lower())


def main() -> int:
    root = pathlib.Path(sys.argv[1]) / "configs"
    # Nobody looks measurements and the book's questions up by name: lint/accuracy.py and lint/book.py read them. Words are
    # tables of the program.
    files = sorted(path for path in root.rglob("*.yaml") if path.relative_to(root).parts[0] not in ("measurements", "studies", "book", "words"))
    problems = []
    seen = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        rel = path.relative_to(root)
        expected = rel.with_suffix("").as_posix().split("/", 1)[1]
        if data.get("name") != expected:
            problems.append(f"{rel}: name {data.get('name')!r}, expected {expected!r}")
        for name in [data["name"], *data.get("aliases", [])]:
            key = (rel.parts[0], plain(name))
            if seen.get(key, rel) != rel:
                problems.append(f"{rel}: {name!r} also names {seen[key]}")
            seen[key] = rel
        cited = set()
        tags(data, cited)
        sources = data.get("sources", {})
        for tag in sorted(cited - set(sources)):
            problems.append(f"{rel}: source tag {tag!r} is not defined in sources:")
        body = text[: text.rfind("\nsources:")]
        for tag, reference in sources.items():
            if not re.search(rf"(?<![\w-]){re.escape(tag)}(?![\w-])", body):
                problems.append(f"{rel}: source tag {tag!r} is cited nowhere")
            if tag.endswith("recall") and "from memory" not in reference:
                problems.append(f"{rel}: {tag!r} does not say that it is quoted from memory")
    print("\n".join(problems) or f"{len(files)} catalog files, names and sources hold")
    return 1 if problems else 0


sys.exit(main())
