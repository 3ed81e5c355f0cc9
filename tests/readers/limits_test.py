"""Every reader of files and of typed text, with inputs that nest without end or expand to more than they are: each is
answered or refused with a sentence, without a signal, within 300 MB and some seconds of processor time.
Usage: limits_test.py BINARY [CASE...]"""
import gzip
import io
import itertools
import json
import os
import pathlib
import resource
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile

DEEP = 100_000
MOST_MB = 300
MOST_SECONDS = 3.0
BRACKETS = {"[": "]", "{": "}", "(": ")", '{"a":': "}", "[{\"a\":": "}]", "- ": "", "<": ">"}

TRAIN = ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8"]
PROFILE = ["profile", "FILE", "--hw", "h100-sxm"]
ROOFLINE = ["roofline", "matmul", "64x4096x4096", "--hw", "h100-sxm"]

# What stands around the nested text, and the command that reads it.
FILES = {
    "model.yaml": ("name: m\nlayers: {}\n", ["model", "./FILE"]),
    "config.json": ('{{"model_type": "llama", "hidden_size": {}}}', ["model", "./FILE"]),
    "hw.yaml": ("name: h\ncompute: {}\n", ["hw", "./FILE"]),
    "model.safetensors.index.json": ('{{"weight_map": {}}}', ["model", "./config.json"]),
    "runs.yaml": ("rows: {}\n", ["validate", "FILE"]),
    "study.yaml": ("command: roofline\narguments: [matmul, 1x1x1]\naxes: {}\n", ["batch", "FILE", "-o", "out.jsonl"]),
    "expect.yaml": ("mfu: {}\n", [*ROOFLINE, "--expect", "FILE"]),
    "load.json": ("{}", ["train", "mixtral-8x7b", "--hw", "h100-sxm", "--chips", "64", "--expert-load", "FILE"]),
    "requests.json": ('[{{"prompt": {}}}]', ["serve", "llama3-8b", "--hw", "h100-sxm", "--trace", "FILE"]),
    "requests.jsonl": ('{{"prompt": {}}}\n', ["serve", "llama3-8b", "--hw", "h100-sxm", "--trace", "FILE"]),
    "requests.csv": ("prompt,generate\n{},1\n", ["serve", "llama3-8b", "--hw", "h100-sxm", "--trace", "FILE"]),
    "run.sh": ("torchrun pretrain_gpt.py --tensor-model-parallel-size $(( {} 1 ))\n", [*TRAIN, "--from", "FILE"]),
    "word.sh": ("A={}\ntorchrun pretrain_gpt.py --tensor-model-parallel-size ${{A:-{}}}\n", [*TRAIN, "--from", "FILE"]),
    "heredoc.sh": ('cat > a.json <<EOF\n{{"a": {}}}\nEOF\ntorchrun pretrain_gpt.py\n', [*TRAIN, "--from", "FILE"]),
    "pod.yaml": ("kind: Pod\nspec:\n  containers:\n  - command:\n    - bash\n    - -c\n    - |\n"
                 "      torchrun pretrain_gpt.py --tensor-model-parallel-size $(( {} 1 ))\n", [*TRAIN, "--from", "FILE"]),
    "object.yaml": ("kind: Pod\nspec: {}\n", [*TRAIN, "--from", "FILE"]),
    "train.toml": ("[parallelism]\ntensor_parallel_degree = {}\n", [*TRAIN, "--from", "FILE"]),
    "section.toml": ("{}\n[parallelism]\ntensor_parallel_degree = 1\n", [*TRAIN, "--from", "FILE"]),
    "recipe.py": ("def a() -> Trainer.Config:\n    return Trainer.Config(training={})\n", [*TRAIN, "--from", "FILE"]),
    "jax.py": ("import jax\nDATA = {}\nFSDP = 4\n", [*TRAIN, "--from", "FILE"]),
    "layout.json": ('{{"schema": "scalecalc/train/1", "plans": {}}}', [*TRAIN, "--from", "FILE"]),
    "plan.json": ('{{"schema": "scalecalc/train/1", "plans": {}}}', ["export", "FILE", "--to", "megatron"]),
    "trace.json": ('{{"traceEvents": {}}}', PROFILE),
    "rocprof.json": ('{{"rocprofiler-sdk-tool": {}}}', PROFILE),
    "kernel_trace.csv": ('Kernel_Name,Start_Timestamp,End_Timestamp\n"{}",1,2\n', PROFILE),
    "shape.hlo": ("HloModule m\nENTRY %m (p: f32[2]) -> f32[2] {{\n  ROOT %a = {} add(%p, %p)\n}}\n", PROFILE),
    "operands.hlo": ("HloModule m\nENTRY %m (p: f32[2]) -> f32[2] {{\n  ROOT %a = f32[2] add({}), sharding={}\n}}\n", PROFILE),
    "rows.jsonl": ('{{"command": "train", "status": "ok", "in_x": {}}}\n', ["batch", "diff", "FILE", "FILE"]),
}
TYPED = {
    "matmul": ["matmul", "TEXT", "--hw", "h100-sxm"],
    "contraction": ["roofline", "contraction", "TEXT", "--hw", "h100-sxm"],
    "condition": [*ROOFLINE, "--fail-if", "TEXT"],
    "quantity": [*ROOFLINE, "--set", "hw.hbm.bandwidth=TEXT"],
    "layout": [*TRAIN, "--fix", "TEXT"],
    "lengths": ["serve", "llama3-8b", "--hw", "h100-sxm", "--prompt", "TEXT"],
    "chips": ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "TEXT"],
    "book": ["book", "TEXT"],
}


def deep_cases():
    for name, (around, command) in FILES.items():
        for opening, closing in BRACKETS.items():
            for ends in (False, True):
                text = opening * DEEP + (closing and "1" + closing * DEEP if ends else "")
                yield f"{name} {opening}{' closed' if ends else ''}", command, {name: around.format(text, text).encode()}
    for name, command in TYPED.items():
        for opening, closing in BRACKETS.items():
            text = opening * (30_000 // len(opening)) + "1" + closing * 30_000
            yield f"{name} {opening}", [word.replace("TEXT", text) for word in command], {}


# ---- what expands

def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def plane(*fields):
    return field(1, field(2, b"/device:TPU:0") + b"".join(fields))


def event(number, offset=1, length=5):
    return field(4, field(1, number) + field(2, offset) + field(3, length))


def line(name, events):
    return field(3, field(2, name) + b"".join(events))


def database(rows=3, *statements):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "a.sqlite"
        made = sqlite3.connect(path)
        made.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
                     "streamId INTEGER, correlationId INTEGER, globalPid INTEGER)")
        made.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, 0, 7, ?, 0)",
                         [(i * 100, i * 100 + 50, i) for i in range(rows)])
        for statement in statements:
            if isinstance(statement, tuple):
                made.executemany(*statement)
            else:
                made.execute(statement)
        made.commit()
        made.close()
        return path.read_bytes()


HLO = "HloModule m\n\nENTRY %main (p: f32[2]) -> f32[2] {\n"
LONG = "hex(zeroblob(500000))"
NUMBERS = [(i,) for i in range(2000)]


def calls_without_end(levels=60):
    """Computations of which each calls the next one twice."""
    parts = ["HloModule m\n"]
    for i in range(levels, 0, -1):
        parts.append(f"%c{i} (p: f32[2]) -> f32[2] {{\n  %p = f32[2] parameter(0)\n")
        if i < levels:
            parts.append(f"  %a = f32[2] call(%p), to_apply=%c{i + 1}\n  %b = f32[2] call(%a), to_apply=%c{i + 1}\n")
        parts.append("  ROOT %r = f32[2] add(%p, %p)\n}\n")
    parts.append("ENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2] parameter(0)\n"
                 "  ROOT %r = f32[2] call(%p), to_apply=%c1\n}\n")
    return "".join(parts).encode()


def packed_tar(content):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("rank0.hlo.gz")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def gguf(*entries):
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, kind, value in entries:
        out += struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value
    return out


def expanding_cases():
    """(name, command, files, what the refusal says or None for an answer)."""
    lines = (HLO + "  a = f32[] a()\n" * 8_000_000 + "}\n").encode()
    yield "gzipped HLO", PROFILE, {"a.hlo.gz": gzip.compress(lines, 6)}, "expands to more than"
    yield "twice gzipped HLO", PROFILE, {"a.tgz": packed_tar(gzip.compress(lines, 6))}, "expands to more than"
    yield "HLO of short lines", PROFILE, {"a.hlo": lines[:8_000_000] + b"\n}\n"}, "expands to more than"
    yield "HLO tuple", PROFILE, {"a.hlo": (HLO + "  %t = (" + "f32[]," * 2_000_000 + ") tuple()\n}\n").encode()}, \
        "expands to more than"
    yield "HLO dimensions", PROFILE, {"a.hlo": (HLO + "  %t = f32[" + "1," * 4_000_000 + "1] a()\n}\n").encode()}, \
        "dimensions"
    yield "HLO brackets", PROFILE, {"a.hlo": (HLO + "  %t = f32" + "[f32" * 1_000_000 + " a()\n}\n").encode()}, None
    yield "HLO calls", PROFILE, {"a.hlo": calls_without_end()}, "too many steps"
    yield "HLO devices", PROFILE, {"a.hlo": (HLO + "".join(
        f"  %a{i} = f32[2] all-reduce(%p), replica_groups=[1,{(1 << 20) - i}]<=[{(1 << 20) - i}]\n"
        for i in range(2000)) + "}\n").encode()}, "devices in lists"
    yield "HLO without operations", PROFILE, {"a.hlo": (HLO + "  ROOT %p = f32[2] parameter(0)\n}\n").encode()}, \
        "no operation"

    names = field(4, field(1, 1) + field(2, field(1, 1) + field(2, b"B" * 10_000)))
    yield "XPlane steps of one long name", PROFILE, {"a.xplane.pb": plane(
        names, line(b"XLA Ops", [event(1)]), line(b"Steps", [event(1, i * 10) for i in range(130_000)]))}, None
    yield "XPlane events of one long operation", PROFILE, {"a.xplane.pb": plane(
        field(5, field(1, 1) + field(2, field(1, 1) + field(2, b"tf_op"))),
        field(5, field(1, 2) + field(2, field(1, 2) + field(2, b"x" * 100_000))),
        field(5, field(1, 3) + field(2, field(1, 3) + field(2, b"flops"))),
        *[field(4, field(1, i) + field(2, field(1, i) + field(2, b"n%d" % i) + field(5, field(1, 1) + field(7, 2)) +
                                       field(5, field(1, 3) + field(3, i)))) for i in range(10, 20_000)],
        line(b"XLA Ops", [event(i, i * 10) for i in range(10, 20_000)]))}, "expands to more than"
    yield "XPlane events of as many names", PROFILE, {"a.xplane.pb": plane(
        line(b"XLA Ops", [event(i, i * 10) for i in range(100_000)]))}, None
    yield "gzipped XPlane", PROFILE, {"a.pb.gz": gzip.compress(plane(
        line(b"XLA Ops", [field(4, field(3, 5))] * 6_000_000)))}, None

    records = '{"rocprofiler-sdk-tool": {"buffer_records": {"kernel_dispatch": [%s]}}}'
    yield "rocprof records of nothing", PROFILE, {"a.json": (records % ",".join(["{}"] * 3_000_000)).encode()}, \
        "without its start and end"
    symbol = '{"rocprofiler-sdk-tool": {"kernel_symbols": [{"kernel_id": 1, "kernel_name": "%s"}], "buffer_records": ' \
             '{"kernel_dispatch": [%s]}}}' % ("k" * 4_000_000, ",".join(
                 ['{"start_timestamp":1,"end_timestamp":2,"dispatch_info":{"kernel_id":1}}'] * 50_000))
    yield "rocprof kernels of one long name", PROFILE, {"a.json": symbol.encode()}, "a name of"
    packet = lambda content: field(1, field(10, 1) + content)
    yield "Perfetto slices of one long name", PROFILE, {"a.pftrace": packet(field(12, field(2, field(1, 1) + field(
        2, b"x" * 2_000_000)))) + b"".join(packet(field(8, i) + field(11, field(9, 1) + field(10, 1) + field(11, i)))
                                           for i in range(50_000))}, "a name of"

    computed = f"TEXT GENERATED ALWAYS AS ({LONG} || id) VIRTUAL"
    yield "database with a computed column", PROFILE, {"a.sqlite": database(
        3, f"CREATE TABLE StringIds(id INTEGER, value {computed})",
        ("INSERT INTO StringIds(id) VALUES(?)", NUMBERS))}, "computed by the schema"
    yield "database with a long default", PROFILE, {"a.sqlite": database(
        3, "CREATE TABLE StringIds(id INTEGER)", ("INSERT INTO StringIds VALUES(?)", NUMBERS),
        f"ALTER TABLE StringIds ADD COLUMN value TEXT DEFAULT '{'x' * 900_000}'")}, "expands to more than"
    yield "database with a long cell", PROFILE, {"a.sqlite": database(
        3, "CREATE TABLE StringIds(id INTEGER, value TEXT)", f"INSERT INTO StringIds VALUES(1, {LONG} || {LONG})")}, \
        "too big"
    yield "database with a view", PROFILE, {"a.sqlite": database(
        3, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k", "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH "
        "RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS start, x + 1 AS end FROM c")}, \
        "no GPU activity"
    yield "database of one long name", PROFILE, {"a.sqlite": database(
        3, "CREATE TABLE StringIds(id INTEGER, value TEXT)", f"INSERT INTO StringIds VALUES(1, {LONG})",
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, textId INTEGER)",
        ("INSERT INTO NVTX_EVENTS VALUES(?, 1000000, 1)", [(i,) for i in range(100_000)]))}, None
    for end in ("-wal", "-journal"):
        yield f"database with a {end}", PROFILE, {"a.sqlite": database(3), "a.sqlite" + end: b"7" * 32}, \
            "wal_checkpoint"

    yield "YAML aliases", ["model", "./FILE"], {"m.yaml": (
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 50_000 + "]\n").encode()}, "expands to more than"
    doubling = "".join(f"A{i + 1}=$A{i}$A{i}\n" for i in range(40))
    yield "script variables", [*TRAIN, "--from", "FILE"], {"run.sh": ("A0=x\n" + doubling).encode()}, \
        "expands to more than"
    value = "X=" + "1" * 100_000 + "\n"
    yield "script document", [*TRAIN, "--from", "FILE"], {"run.sh": (
        value + "cat > a.json <<EOF\n" + "$X" * 50_000 + "\nEOF\n").encode()}, "expands to more than"
    yield "script arithmetic", [*TRAIN, "--from", "FILE"], {"run.sh": (
        value + "Y=$(( " + "$X+" * 50_000 + "1 ))\n").encode()}, "expands to more than"
    yield "script documents", [*TRAIN, "--from", "FILE"], {"run.sh": (
        'cat > a.json <<E\n{"a":1}\nE\n' * 200_000).encode()}, "documents in one script"
    yield "objects of Kubernetes", [*TRAIN, "--from", "FILE"], {"run.yaml": ("kind: X\n---\n" * 500_000).encode()}, \
        "documents in one file"
    yield "row of many columns", ["batch", "diff", "FILE", "FILE"], {"a.jsonl": (
        '{"command": "train", "status": "ok", ' + ",".join(f'"c{i}": 1' for i in range(200_000)) + "}\n").encode()}, \
        "10,000 values"
    yield "GGUF number", ["model", "./FILE"], {"m.gguf": gguf(
        (b"general.architecture", 8, struct.pack("<Q", 9) + b"deepseek2"),
        (b"deepseek2.attention.kv_lora_rank", 4, struct.pack("<I", 512)),
        (b"deepseek2.rope.dimension_count", 10, struct.pack("<Q", (1 << 64) - 1)))}, "deepseek2"

    yield "collective of two sweeps", ["collective", "all-gather", "--hw", "h100-sxm", "--bytes", "1..10000+1",
                                       "--group", "2,4,8"], {}, "more than 10,000 points"
    for command in (["roofline", "matmul", "SWEEPx4096x4096", "--hw", "h100-sxm"],
                    ["roofline", "add", "SWEEP", "--hw", "h100-sxm"],
                    ["collective", "all-gather", "--hw", "h100-sxm", "--group", "8", "--bytes", "SWEEP"],
                    ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "SWEEP"]):
        for sweep, said in (("1..100000+1", "more than 10,000 values"), ("1..10000+1", None)):
            yield f"{command[0]} {command[1]} {sweep}", [word.replace("SWEEP", sweep) for word in command], {}, said


def serve():
    """Runs the commands on standard input. In a process of its own, and a small one: what a process had in memory before
    it became the program counts as the program's."""
    resource.setrlimit(resource.RLIMIT_CPU, (20, 25))
    for asked in sys.stdin:
        place, words = json.loads(asked)
        with open(f"{place}/said", "wb") as said:
            process = subprocess.Popen(words, cwd=place, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        print(json.dumps([process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), flush=True)


def ask(server, binary, place, command, files):
    for name, content in files.items():
        (place / name).write_bytes(content)
    named = next(iter(files), "")
    words = [binary, *(word.replace("FILE", named) for word in command)]
    server.stdin.write(json.dumps([str(place), words]) + "\n")
    server.stdin.flush()
    code, seconds, megabytes = json.loads(server.stdout.readline())
    return code, (place / "said").read_text(encoding="utf-8", errors="replace"), seconds, megabytes


def main():
    if sys.argv[1:] == ["--serve"]:
        return serve()
    binary = os.path.abspath(sys.argv[1])
    environment = {**os.environ, "XDG_CONFIG_HOME": "/dev/null/config"}
    server = subprocess.Popen([sys.executable, "-B", __file__, "--serve"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env=environment)
    failed, count = [], 0
    for name, command, files, expected in itertools.chain(((*case, None) for case in deep_cases()), expanding_cases()):
        count += 1
        if len(sys.argv) > 2 and not any(asked in name for asked in sys.argv[2:]):
            continue
        with tempfile.TemporaryDirectory(prefix="scalecalc-limits-") as made:
            place = pathlib.Path(made)
            (place / "config.json").write_text('{"model_type": "llama"}')
            code, said, seconds, megabytes = ask(server, binary, place, command, files)
        problems = []
        if code not in (0, 2, 3):
            problems.append(f"exit status {code}")
        if expected is not None and (code != 2 or expected not in said):
            problems.append(f"exit status {code}, and {expected!r} is not said")
        if seconds > MOST_SECONDS:
            problems.append(f"{seconds:.1f} s of processor time")
        if megabytes > MOST_MB:
            problems.append(f"{megabytes:.0f} MB")
        if problems:
            failed.append(name)
            print(f"{name}: {'; '.join(problems)}\n  {said[:300]}")
        elif len(sys.argv) > 2:
            print(f"{name}: exit status {code}, {seconds:.2f} s, {megabytes:.0f} MB\n  {said[:300]}")
    server.stdin.close()
    print(f"{count} inputs, {len(failed)} beyond the limits")
    return 1 if failed or server.wait() != 0 else 0


sys.exit(main())
