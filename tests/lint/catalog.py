"""The shipped catalog: every figure block names its source, every source tag is defined and used, and once (sources.yaml
has what several files cite), what is quoted from memory says so, and names and files agree. Coefficients stand at the
highest level that has them (family, architecture, chip), and only of formats that the chip computes in. Figures are held
against data sheets by tests/unit/spec/datasheet_test.cpp."""
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


def coefficients(node, path=()):
    """Every coefficient of a block with its path, but those of its stacks and architectures."""
    for key, value in node.items():
        if key in ("stacks", "architectures", "sources", "model_error") or not isinstance(value, dict):
            continue
        if "value" in value or "times" in value:
            yield (*path, key), value
        else:
            yield from coefficients(value, (*path, key))


def says(coefficient):
    return coefficient.get("value"), coefficient.get("error")


def wrong_formats(block, compute):
    """Coefficients of number formats that no matmul of the chip has."""
    rates = set(compute["matmul"]) if isinstance(compute.get("matmul"), dict) else None
    if rates is None:  # unpublished
        return
    for path, _ in coefficients(block):
        scaled = path[0] in ("block_scaled", "row_scaled") and not rates & {"fp8", "fp6", "fp4"}
        if scaled or (path[0] == "matmul" and len(path) == 2 and path[1] not in rates | {"default"}):
            yield ".".join(path)


def efficiency_problems(families, chips):
    """`families` and `chips`: documents by path, of configs/efficiency and configs/hardware."""
    by_name = {data["name"]: data for data in families.values()}
    shared = {}
    for rel, data in chips.items():
        own = data.get("efficiency", {})
        family, architecture = by_name[data["family"]], data.get("architecture")
        inherited = {**dict(coefficients(family)),
                     **dict(coefficients(family.get("architectures", {}).get(architecture, {})))}
        if architecture:
            shared.setdefault((data["family"], architecture), []).append({p: says(c) for p, c in coefficients(own)})
        base = {**inherited, **dict(coefficients(own))}
        for block, where in [(own, "efficiency"), *((b, f"stacks.{n}") for n, b in own.get("stacks", {}).items())]:
            for path in wrong_formats(block, data["compute"]):
                yield f"{rel}: {where} has {path}, a format that the chip does not compute in"
            if where != "efficiency":
                for path, coefficient in coefficients(block):
                    if "value" in coefficient and path in base and says(base[path]) == says(coefficient):
                        yield f"{rel}: {where} has {'.'.join(path)} as the chip has it; leave it out"
    for (family, architecture), blocks in shared.items():
        for path, said in blocks[0].items():
            if len(blocks) > 1 and path[0] != "serving" and all(block.get(path) == said for block in blocks):
                yield (f"efficiency of all {len(blocks)} chips of {architecture} has the same {'.'.join(path)}: move it to "
                       f"architectures.{architecture} of efficiency/{family}.yaml")
    for rel, data in families.items():
        for architecture in data.get("architectures", {}):
            if (data["name"], architecture) not in shared:
                yield f"{rel}: no chip of the family is of the architecture {architecture}"


def main() -> int:
    root = pathlib.Path(sys.argv[1]) / "configs"
    # Nobody looks measurements and the book's questions up by name: lint/accuracy.py and lint/book.py read them. Words are
    # tables of the program.
    files = sorted(path for path in root.rglob("*/*.yaml") if path.relative_to(root).parts[0] not in ("measurements", "studies", "book", "words"))
    common = yaml.safe_load((root / "sources.yaml").read_text(encoding="utf-8"))["sources"]
    problems = []
    used = {}
    documents = {"efficiency": {}, "hardware": {}}
    seen = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        rel = path.relative_to(root)
        if rel.parts[0] in documents and len(rel.parts) == 2:
            documents[rel.parts[0]][rel] = data
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
        shares = common if rel.parts[0] in documents else {}
        for tag in sorted(cited - set(sources) - set(shares)):
            problems.append(f"{rel}: source tag {tag!r} is not defined in sources:")
        body = text[: text.rfind("\nsources:")] if sources else text
        for tag in shares:
            if tag not in sources and re.search(rf"(?<![\w-]){re.escape(tag)}(?![\w-])", body):
                used.setdefault(tag, []).append(rel)
        for tag, reference in sources.items():
            if not re.search(rf"(?<![\w-]){re.escape(tag)}(?![\w-])", body):
                problems.append(f"{rel}: source tag {tag!r} is cited nowhere")
            if shares.get(tag) == reference:
                problems.append(f"{rel}: source tag {tag!r} is in sources.yaml already")
            if tag.endswith("recall") and "from memory" not in reference:
                problems.append(f"{rel}: {tag!r} does not say that it is quoted from memory")
    problems += [f"sources.yaml: {tag!r} is cited by {len(used.get(tag, []))} files; two must" for tag in common
                 if len(used.get(tag, [])) < 2]
    problems += [f"sources.yaml: {tag!r} does not say that it is quoted from memory" for tag, reference in common.items()
                 if tag.endswith("recall") and "from memory" not in reference]
    problems += efficiency_problems(documents["efficiency"], documents["hardware"])
    print("\n".join(problems) or f"{len(files)} catalog files, names and sources hold")
    return 1 if problems else 0


sys.exit(main())
