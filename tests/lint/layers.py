"""Includes point one way only: a file may include its own layer and those before it. The domains come first, then report
and batch, the outputs of all features, cli, and the options and the commands of all features (docs/design.md). Heavy
third-party headers stay behind the files that fence them. A .cpp begins with a sentence on what it does."""
import itertools
import pathlib
import re
import sys

LAYERS = ["base", "config", "spec", "import", "model", "network", "cost", "plan", "hw", "collective", "roofline", "matmul",
          "bounds", "economics", "train", "serve", "launch", "sensitivity", "compare", "scaling_law", "design",
          "model_card", "jobs", "distill", "rl", "validate", "calibrate", "profile", "book", "report", "batch", "cli", "api"]
GENERAL = {"report", "cli", "api"}  # whatever a file there is called
KINDS = ["", "output", "cli", "options", "command", "api"]  # a domain, report and batch have the first
FENCES = {
    "yaml-cpp/": {"config/yaml_reader.cpp"},
    "nlohmann/": {"report/"},
    "CLI/": {"cli/"},
    "spdlog/": {"cli/log.cpp"},
    "tbb/": {"plan/threads.cpp", "batch/run_shard.cpp"},
    "sqlite3.h": {"batch/database.h", "profile/read_nsight.cpp"},
    "zlib.h": {"profile/byte_source.cpp", "base/inflate.cpp", "cmake/embed_catalog.cpp", "cmake/deflate.cpp"},
    "toml++/": {"launch/toml_file.cpp"},
    "sha2.h": {"base/digest.cpp"},
    "nlopt": {"calibrate/minimize.cpp"},
}
# Two types of one name in one namespace are undefined behaviour that no linker reports.
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)[^;]*\{", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def rank(name: str) -> tuple[int, int]:
    """Of a file below src/: its kind, then its directory."""
    directory = name.split("/")[0]
    kind = directory if directory in GENERAL else pathlib.PurePath(name).stem.rpartition("_")[2]
    return KINDS.index(kind) if kind in KINDS else 0, LAYERS.index(directory)


def first_sentence(text: str) -> str:
    """Of the comment that a file begins with; empty without one."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
    return re.match(r".*?\.(?= |$)|.*", " ".join(line[2:].strip() for line in lines)).group()


def main() -> int:
    src = pathlib.Path(sys.argv[1]) / "src"
    problems = []
    types: dict[str, str] = {}
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cpp"))
    for path in files:
        name = path.relative_to(src).as_posix()
        layer = name.split("/")[0]
        text = path.read_text(encoding="utf-8")
        for included in INCLUDE.findall(text):
            known = "/" in included and layer in LAYERS and included.split("/")[0] in LAYERS
            if known and rank(included) > rank(name):
                problems.append(f"src/{name}: includes {included}, a later layer")
            for prefix, allowed in FENCES.items():
                if included.startswith(prefix) and not any(name.startswith(a) for a in allowed):
                    problems.append(f"src/{name}: includes {included}, fenced to {', '.join(sorted(allowed))}")
            if included == "iostream" and path.suffix == ".h":
                problems.append(f"src/{name}: <iostream> in a header")
        if layer not in LAYERS and layer not in ("main.cpp", "cmake"):
            problems.append(f"src/{name}: not in a known layer ({', '.join(LAYERS)})")
        sentence = first_sentence(text)
        if path.suffix == ".cpp" and (len(sentence.split()) < 4 or sentence.startswith("Source")):
            problems.append(f"src/{name}: begins with no sentence on what the file does, and for whom")
        if path.suffix == ".h":
            for declared in TYPE.findall(text):
                if types.setdefault(declared, name) != name:
                    problems.append(f"src/{name}: the type {declared} is in src/{types[declared]} too; rename one")
        lines = text.count("\n")
        if lines > 600:
            problems.append(f"src/{name}: {lines} lines; split it by concept (limit 600)")
    if not files:
        problems.append("no sources found")
    print("\n".join(problems) or f"{len(files)} files, every include points one way")
    return 1 if problems else 0


sys.exit(main())
