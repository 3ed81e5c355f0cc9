"""The schemas for editors against the program: every file of the catalog keeps to its schema; a file damaged in a place
of chance (an unknown key, a map for a number, a key that must be there taken away) is refused by both or by neither. Usage: file_schemas.py
ROOT BINARY"""
import copy
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

ROOT, BINARY = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
MUTATIONS = 15  # of each kind of file


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):
    """Scalars as editors read YAML 1.2: no dates, no yes, no octal."""


Loader.yaml_implicit_resolvers = {}
for tag, form, first in (("bool", r"^(true|false)$", "tf"), ("null", r"^(null|~|)$", ["n", "~", ""]),
                         ("int", r"^-?[0-9]+$", "-0123456789"),
                         ("float", r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$", "-0123456789")):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(form), list(first))

# How a file of each kind is asked about, so that nothing but reading it can fail.
KINDS = {
    "model": ("models/*.yaml", lambda f: ["model", str(f)]),
    "hardware": ("hardware/*.yaml", lambda f: ["hw", str(f)]),
    "study": ("studies/*.yaml", lambda f: ["batch", "plan", str(f), "--yes", "-o", str(f.parent / "plan")]),
    "stack": ("stacks/*.yaml", lambda f: [*STACKS[f.stem], "--config-dir", str(f.parent.parent)]),
    "train-measurements": ("measurements/train*.yaml", lambda f: ["validate", str(f)]),
    "serve-measurements": ("measurements/serve.yaml", lambda f: ["validate", str(f)]),
    "rl-measurements": ("measurements/rl.yaml", lambda f: ["validate", str(f)]),
}
TRAIN, SERVE = "train llama3-8b --hw h100-sxm --chips 8 --top 1 --stack", "serve llama3-8b --hw h100-sxm --chips 1 --engine"
STACKS = {stack: [*TRAIN.split(), stack] for stack in ("megatron", "nemo", "torchtitan", "deepspeed", "nanotron")} | \
    {stack: [*SERVE.split(), stack] for stack in ("vllm", "sglang", "trtllm")}
SCRIPT = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 --seq-length 4096\n"
ROWS = 3  # of a file of measurements that is damaged: all say the same over and over


def places(node, path=()):
    yield path, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from places(value, path + (key,))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from places(value, path + (i,))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def schema_nodes(schema, path, document):
    """What the schema says of the map at the path, if it says which keys it may have."""
    for step in path:
        ways = schema.get("anyOf", [schema])
        schema = next((w for w in ways if w.get("type") in ("object", "array")), {})
        if isinstance(step, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(step, schema.get("additionalProperties") or {})
    ways = schema.get("anyOf", [schema])
    return next((w for w in ways if w.get("additionalProperties") is False), None)


def damaged(document, schema, chance):
    out = copy.deepcopy(document)
    found = list(places(out))
    for _ in range(100):
        path, node = chance.choice(found)
        if isinstance(node, dict) and chance.random() < 0.5 and schema_nodes(schema, path, out):
            node["no_such_key"] = 1
            return out, f"{path}: an unknown key"
        says = schema_nodes(schema, path, out) if isinstance(node, dict) and chance.random() < 0.3 else None
        needed = [key for way in (says or {}).get("anyOf", [says or {}]) for key in way.get("required", ()) if key in node]
        if needed and "extends" not in out:
            taken = chance.choice(needed)
            del node[taken]
            return out, f"{path}: without {taken}"
        if path and isinstance(node, (int, float)) and not isinstance(node, bool) and schema_nodes(schema, path[:-1], out):
            at(out, path[:-1])[path[-1]] = {"a": 1}
            return out, f"{path}: a map for a number"
    return None, ""


def refuses(words):
    result = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=120, check=False)
    return result.returncode == 2, result.stderr


def main():
    problems, tried, chance = [], 0, random.Random(22)
    for kind, (pattern, words) in KINDS.items():
        schema = json.loads((ROOT / f"docs/schema/files/{kind}.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        documents = {}
        for file in sorted((ROOT / "configs").glob(pattern)):
            documents[file] = yaml.load(file.read_text(encoding="utf-8"), Loader)
            for error in list(validator.iter_errors(documents[file]))[:3]:
                problems.append(f"{file.relative_to(ROOT)}: {list(error.path)}: {error.message[:200]}")
        for _ in range(MUTATIONS if words else 0):
            file = chance.choice([f for f in documents if kind != "stack" or f.stem in STACKS])
            whole = dict(documents[file])
            if "rows" in whole:
                whole["rows"] = chance.sample(whole["rows"], min(ROWS, len(whole["rows"])))
                used = {row.get("model") for row in whole["rows"]}  # others are not looked at
                whole["models"] = {name: model for name, model in whole.get("models", {}).items() if name in used}
                whole = {key: value for key, value in whole.items() if value != {}}
            if kind == "stack":  # facts of frameworks beside it are read when those are asked about
                whole["supports"] = [entry for entry in whole["supports"] if file.stem in entry.get("of", [file.stem])]
            mutant, what = damaged(whole, schema, chance)
            if mutant is None:
                continue
            with tempfile.TemporaryDirectory() as directory:
                copied = pathlib.Path(directory) / file.parent.name / file.name
                copied.parent.mkdir()
                copied.write_text(yaml.safe_dump(mutant, sort_keys=False, allow_unicode=True), encoding="utf-8")
                by_program, said = refuses(words(copied))
                if kind == "stack" and not by_program:  # launch: is read when a launch file is
                    script = copied.with_name("run.sh")
                    script.write_text(SCRIPT)
                    by_program, said = refuses(["lint", str(script), "--hw", "h100-sxm", "--model", "llama3-8b", "--config-dir",
                                                directory])
            by_schema = not validator.is_valid(mutant)
            tried += 1
            if by_program != by_schema:
                problems.append(f"{file.relative_to(ROOT)}: {what}: the schema {'refuses' if by_schema else 'takes'} it, the "
                                f"program {'refuses' if by_program else 'takes'} it: {said[:300]}")
    print("\n".join(problems) or f"{tried} damaged files: schemas and readers agree")
    return 1 if problems else 0


sys.exit(main())
