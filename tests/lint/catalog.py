"""The shipped catalog: every figure block names its source, every source tag is defined, names and files agree, and
headline rates stay within the data sheets' brackets."""
import pathlib
import sys

import yaml

# Dense bf16 TFLOP/s and HBM GB/s per chip as the vendors' data sheets bracket them.
BRACKETS = {
    "tpu-v4": (270, 280, 1200, 1230), "tpu-v5e": (196, 198, 810, 860), "tpu-v5p": (458, 460, 2760, 2800),
    "tpu-v6e": (917, 927, 1600, 1650), "tpu-v7": (2300, 2310, 7200, 7400), "a100-80g": (311, 313, 2000, 2048),
    "h100-sxm": (988, 991, 3300, 3400), "h800": (988, 991, 3300, 3430), "h200": (988, 991, 4790, 4810),
    "b200": (2240, 2260, 7700, 8000), "gb200-nvl72": (2490, 2510, 7900, 8100), "mi300x": (1300, 1310, 5290, 5310),
    "mi325x": (1300, 1310, 5990, 6010), "gaudi2": (430, 434, 2440, 2460), "gaudi3": (1670, 1840, 3670, 3710),
    "trainium2": (660, 670, 2890, 2910),
}


def number(text: str, unit: str) -> float:
    text = str(text)
    for suffix, factor in (("T" + unit, 1e3), ("G" + unit, 1.0)):
        if text.endswith(suffix):
            return float(text[: -len(suffix)]) * factor
    raise ValueError(text)


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


def main() -> int:
    root = pathlib.Path(sys.argv[1]) / "configs"
    problems, files = [], sorted(root.rglob("*.yaml"))
    seen = {}
    for path in files:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        rel = path.relative_to(root)
        expected = rel.with_suffix("").as_posix().split("/", 1)[1]
        if data.get("name") != expected:
            problems.append(f"{rel}: name {data.get('name')!r}, expected {expected!r}")
        for name in [data["name"], *data.get("aliases", [])]:
            key = (rel.parts[0], name.lower())
            if key in seen:
                problems.append(f"{rel}: {name!r} also names {seen[key]}")
            seen[key] = rel
        cited = set()
        tags(data, cited)
        for tag in sorted(cited - set(data.get("sources", {}))):
            problems.append(f"{rel}: source tag {tag!r} is not defined in sources:")
        if rel.parts[0] == "hardware" and data["name"] in BRACKETS:
            low, high, slow, fast = BRACKETS[data["name"]]
            rate = number(data["compute"]["matmul"]["bf16"], "FLOP/s") / 1e3
            bandwidth = number(data["hbm"]["bandwidth"], "B/s")
            if not low <= rate <= high:
                problems.append(f"{rel}: bf16 {rate} TFLOP/s outside {low}..{high}")
            if not slow <= bandwidth <= fast:
                problems.append(f"{rel}: HBM {bandwidth} GB/s outside {slow}..{fast}")
    missing = set(BRACKETS) - {name for kind, name in seen if kind == "hardware"}
    problems += [f"no file for {name}" for name in sorted(missing)]
    print("\n".join(problems) or f"{len(files)} catalog files, names, sources and brackets hold")
    return 1 if problems else 0


sys.exit(main())
