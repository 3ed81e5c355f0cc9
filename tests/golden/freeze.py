"""tests/golden/catalog: the catalog's files that transcripts name, as they were when they were frozen, so that a fit or a
correction rewrites no transcript. golden_tests is built with them in the place of those of configs/; all else is live.

Without --update: every frozen file is one that a transcript names, and every named one is frozen. golden_tests reads them.
With --update: copies the files of configs/ as they are now; then SCALECALC_UPDATE_GOLDEN=1 writes the transcripts.

usage: freeze.py SOURCE_DIR [--update]
"""
import pathlib
import re
import shutil
import sys

import yaml

# What fits and corrections change. Of the first two the files that transcripts name, of the others all.
NAMED = ["hardware", "models"]
WHOLE = ["efficiency", "evidence"]
SINGLE = ["sources.yaml"]


def plain(name):
    """A name as the catalog compares it."""
    return re.sub(r"[-_ ]", "", name.lower())


def named_files(root):
    words = set()
    for path in [*(root / "tests/golden").glob("*.transcript"), *(root / "tests/golden").glob("*_test.cpp")]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".transcript":  # what is asked, not what is answered
            text = text[:text.find("\n$ ") + 1] + "\n".join(line for line in text.splitlines() if line.startswith("$ "))
        words.update(plain(word) for word in re.findall(r"[\w./-]+", text))
    for folder in NAMED:
        for path in sorted((root / "configs" / folder).rglob("*.yaml")):
            data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
            if words & {plain(name) for name in [data["name"], *data.get("aliases", [])]}:
                yield path.relative_to(root / "configs")
    for folder in WHOLE:
        yield from (path.relative_to(root / "configs") for path in sorted((root / "configs" / folder).glob("*.yaml")))
    yield from map(pathlib.Path, SINGLE)


def main():
    root = pathlib.Path(sys.argv[1])
    frozen = root / "tests/golden/catalog"
    wanted = set(named_files(root))
    if "--update" in sys.argv[2:]:
        shutil.rmtree(frozen, ignore_errors=True)
        for file in wanted:
            (frozen / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / "configs" / file, frozen / file)
        return
    there = {path.relative_to(frozen) for path in frozen.rglob("*.yaml")}
    problems = [f"tests/golden/catalog/{file}: no transcript names it: run freeze.py --update" for file in there - wanted]
    problems += [f"tests/golden/catalog lacks {file}, which a transcript names: copy it" for file in wanted - there]
    print("\n".join(sorted(problems)) or f"{len(there)} frozen files, all named")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
