"""The published runs of tests/data/published_runs.yaml as command lines, and their answers."""
import json
import pathlib
import subprocess

import yaml


def load(root):
    text = (pathlib.Path(root) / "tests/data/published_runs.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["runs"]


def question(run):
    """The job alone: what the search is free to answer. The batch is the one that ran."""
    return ["train", run["model"], "--hw", run["hw"], "--chips", str(run["chips"]), *run["flags"].split(),
            "--batch-tolerance", "0", *([] if "--stack" in run["flags"] else ["--stack", "any"])]


def as_run(run):
    pins = ",".join(f"{key}={value}" for key, value in run["fix"].items())
    return [*question(run), "--fix", pins]


def what_if(run):
    """The run with the changes of its `what_if`."""
    changes = run["what_if"]
    changed = {**run, "fix": {**run["fix"], **changes.get("fix", {})}}
    return [*as_run(changed), *changes.get("flags", "").split()]


def answer(binary, words, top):
    """Exit status and document."""
    done = subprocess.run([binary, *words, "--top", str(top), "--json", "--quiet"], capture_output=True, text=True,
                          timeout=600, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


# Pins whose key in the document is another.
LAYOUT_KEY = {"mb": "micro_batch_seqs", "ga": "grad_accum"}


def pinned(run, layout):
    """Those dimensions of a layout that the run pins; "full:8" is remat full of 8 layers."""
    policy, _, layers = layout["remat"].partition(":")
    layout = {**layout, "remat": policy, "remat_layers": int(layers or 0)}
    return {key: int(layout[LAYOUT_KEY.get(key, key)]) if isinstance(value, int) else layout[key]
            for key, value in run["fix"].items()}
