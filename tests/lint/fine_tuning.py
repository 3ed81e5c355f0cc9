"""The fine-tuning tables of docs/case-studies.md against the program: generated from what `scalecalc validate` says of
tests/data/fine_tuning.yaml and of the rows with adapters in configs/measurements/train.yaml. Usage: fine_tuning.py ROOT
BINARY [--update]"""
import json
import pathlib
import re
import subprocess
import sys

QWEN = "tests/data/fine_tuning.yaml"
SHOWN = (1024, 2048, 8192)
METHODS = {"lora": "LoRA", "qlora": "QLoRA", "sft": "whole model", "lora-zero3": "LoRA, ZeRO-3 on 4"}


def rows(root, binary, *args):
    done = subprocess.run([binary, "validate", *args, "--json"], cwd=root, capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"scalecalc validate {' '.join(args)}: exit {done.returncode}\n{done.stderr}")
    return {row["id"]: row for row in json.loads(done.stdout)["rows"]}


def seconds(value):
    return f"{value:.3g} s"


def percent(value):
    return f"{100 * value:+.0f}%".replace("+0%", "0%").replace("-0%", "0%")


def gigabytes(value):
    return f"{value / 1e9:.1f} GB"


def qwen(root, binary):
    times, memory = rows(root, binary, QWEN), rows(root, binary, QWEN, "--memory")
    out = ["| model | method | tokens | published | ours | | memory, published | ours | |",
           "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, time in times.items():
        model, method, tokens = re.fullmatch(r"(qwen-[\d.]+b)-(.*)-(\d+)", name).groups()
        if int(tokens) not in SHOWN:
            continue
        bytes_ = memory[name]
        out.append(f"| {model} | {METHODS[method]} | {int(tokens):,} | {seconds(time['measured'])} | "
                   f"{seconds(time['predicted'])} | {percent(time['error'])} | {gigabytes(bytes_['measured'])} | "
                   f"{gigabytes(bytes_['predicted'])} | {percent(bytes_['error'])} |")
    return out


def nemo(root, binary):
    out = ["| run | layout | published | ours | low to high | |", "|---|---|--:|--:|--:|--:|"]
    for name, row in rows(root, binary, "train").items():
        if "-lora-" not in name:
            continue
        out.append(f"| {row['model']}, {row['chips']} {row['chip']}, {row['precision']} | {row['degrees']} | "
                   f"{seconds(row['measured'])} | {seconds(row['predicted'])} | {seconds(row['low'])} to "
                   f"{seconds(row['high'])} | {percent(row['error'])} |")
    return out


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    text = wanted = path.read_text(encoding="utf-8")
    for name, table in (("qwen-lora", qwen), ("nemo-lora", nemo)):
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        if not place.search(text):
            sys.exit(f"docs/case-studies.md has no place for {name}")
        lines = table(root, binary)
        wanted = place.sub(lambda m, lines=lines: m.group(1) + "\n".join(lines) + "\n" + m.group(2), wanted)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print("docs/case-studies.md is not what tests/lint/fine_tuning.py --update would write")
        return 1
    print("fine-tuning runs stand beside their estimates")
    return 0


sys.exit(main())
