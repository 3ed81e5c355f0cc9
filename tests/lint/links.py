"""Links have one owner: only src/network reads a tier's bandwidth, latency or oversubscription, and src/spec fills them.
So a divisor cannot be forgotten in one command. And every shipped tier says what its latency is charged for.

    python3 tests/lint/links.py SOURCE
"""
import pathlib
import re
import sys

OWNERS = ("network/", "spec/")
# The data sheet as it is printed, field by field.
SHOWN = {"hw/hw_figures_output.cpp": {"oversubscription"}}
FIELD = re.compile(r"(?:\.|->|::)(link_bandwidth|bandwidth_per_chip|hop_latency|oversubscription|switched\.latency)\b")
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
TIER = re.compile(r"^  - tier: (\S+)\n((?:    .*\n)*)", re.M)


def readers(src: pathlib.Path):
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cpp")):
        name = path.relative_to(src).as_posix()
        if name.startswith(OWNERS):
            continue
        code = NO_CODE.sub("", path.read_text(encoding="utf-8"))
        for number, line in enumerate(code.splitlines(), 1):
            for field in FIELD.findall(line):
                if field not in SHOWN.get(name, set()):
                    yield f"src/{name}:{number}: reads {field}; network/tier_rates.h has the tier's rates"


def meanings(configs: pathlib.Path):
    for path in sorted(configs.rglob("*.yaml")):
        for tier, body in TIER.findall(path.read_text(encoding="utf-8")):
            if re.search(r"^    latency: ", body, re.M) and not re.search(r"^    latency_per: ", body, re.M):
                yield f"{path.name}: tier {tier} gives a latency and not what waits for it (latency_per)"


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    problems = [*readers(root / "src"), *meanings(root / "configs" / "hardware")]
    print("\n".join(problems) or "links are read in src/network alone, and latencies say what they are of")
    return 1 if problems else 0


sys.exit(main())
