"""Processor time of one decode estimate: scalecalc, GenZ (github.com/abhibambhaniya/GenZ-LLM-Analyzer) and LLM-Viewer
(github.com/hahnyuan/LLM-Viewer), in one run, each on one core.

usage: against_serving_tools.py GENZ_CHECKOUT LLM_VIEWER_CHECKOUT SCALECALC

Prints the table of docs/performance.md. One estimate is a decode step of Llama 2 7B in 16 bits on one A100, 2,048 tokens
of context, at one batch. GenZ and LLM-Viewer are called in-process, as a script of theirs would, over batches of 1 to
32; scalecalc answers studies in-process: a question each with its catalog, layouts, memory, band and JSON, and
questions over all batches, whose difference is what a further estimate takes. Needs python3-numpy, python3-pandas and
python3-tqdm; of packages that GenZ imports and this estimate never calls (plots, Pareto sets) and of transformers, from
which LLM-Viewer takes the model's figures, stand-ins are given here."""
import argparse
import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import types
import warnings

CONTEXT = 2048
BATCHES = range(1, 33)
LLAMA2_7B = dict(hidden_size=4096, num_attention_heads=32, num_key_value_heads=32, num_hidden_layers=32,
                 intermediate_size=11008, vocab_size=32000, max_position_embeddings=4096, model_type="llama")
STAND_INS = ("matplotlib", "seaborn", "paretoset", "torch", "transformers", "plotly", "IPython", "aiconfigurator", "scipy",
             "tabulate")
STUDY = """command: serve
arguments: [llama2-7b]
flags: {{hw: a100-80g, chips: 1, generate: 1, regime: static, weights: bf16, kv: bf16, top: 1, batch: "{batches}"}}
axes:
  prompt: {prompts}
"""
QUESTIONS = 1000  # of a study; processor time is counted in ticks


class StandIn(types.ModuleType):
    """A package that is imported and not used."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *_, **__):
        return self


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in STAND_INS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        return None


def processor_seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def seconds_of_each(estimate):
    """One estimate first, for what a program does once."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate(BATCHES[0])
        start = processor_seconds(resource.RUSAGE_SELF)
        times = [estimate(batch) for batch in BATCHES]
    return (processor_seconds(resource.RUSAGE_SELF) - start) / len(BATCHES), times[-1]


def genz(checkout):
    sys.path.insert(0, str(checkout))
    from GenZ import decode_moddeling

    def estimate(batch):
        found = decode_moddeling(model="llama2_7b", batch_size=batch, Bb=1, input_tokens=CONTEXT, output_tokens=0,
                                 system_name="A100_80GB_GPU", bits="bf16", tensor_parallel=1)
        return found["Latency"] / 1e3

    return seconds_of_each(estimate)


def llm_viewer(checkout):
    sys.path.insert(0, str(checkout))
    os.chdir(checkout)
    import transformers

    transformers.AutoConfig = types.SimpleNamespace(from_pretrained=lambda *_, **__: types.SimpleNamespace(**LLAMA2_7B))
    with contextlib.redirect_stdout(io.StringIO()):
        import model_analyzer

        model_analyzer.AutoConfig = transformers.AutoConfig
        analyzer = model_analyzer.ModelAnalyzer("meta-llama/Llama-2-7b-hf", "nvidia_A100_80G", "configs/Llama.py")

    def estimate(batch):
        found = analyzer.analyze(seqlen=CONTEXT, batchsize=batch, use_flashattention=True)
        return found["total_results"]["decode"]["inference_time"]

    return seconds_of_each(estimate)


def study_seconds(binary, folder, batches, prompts):
    study = pathlib.Path(folder, "study.yaml")
    study.write_text(STUDY.format(batches=",".join(map(str, batches)), prompts=list(prompts)), encoding="utf-8")
    start = processor_seconds(resource.RUSAGE_CHILDREN)
    rows = subprocess.run([binary, "batch", str(study), "--jobs", "1", "-o", "csv"], check=True, capture_output=True,
                          text=True).stdout.splitlines()
    last = dict(zip(rows[0].split(","), rows[-1].split(",")))
    return processor_seconds(resource.RUSAGE_CHILDREN) - start, float(last["decode_step_s"])


def scalecalc(binary):
    """A question of one batch, and a batch more in a question of many; without what starting takes."""
    prompts = range(CONTEXT - QUESTIONS + 1, CONTEXT + 1)
    with tempfile.TemporaryDirectory() as folder:
        started, step = study_seconds(binary, folder, BATCHES[-1:], [CONTEXT])
        single, _ = study_seconds(binary, folder, BATCHES[-1:], prompts)
        sweep, _ = study_seconds(binary, folder, BATCHES, prompts)
    question = (single - started) / (QUESTIONS - 1)
    return (question, step), ((sweep - single) / QUESTIONS / (len(BATCHES) - 1), step)


def main():
    parser = argparse.ArgumentParser()
    for name in ("genz", "llm_viewer", "scalecalc"):
        parser.add_argument(name)
    words = parser.parse_args()
    binary = os.path.abspath(words.scalecalc)
    checkouts = pathlib.Path(words.genz).resolve(), pathlib.Path(words.llm_viewer).resolve()
    sys.meta_path.insert(0, Finder())
    ours = scalecalc(binary)
    found = {"GenZ": genz(checkouts[0]), "LLM-Viewer": llm_viewer(checkouts[1]), "scalecalc, a question": ours[0],
             "scalecalc, a batch more of a question": ours[1]}
    print("| | processor time of an estimate | over a batch of ours | step at batch 32 |\n|---|--:|--:|--:|")
    for name, (seconds, step) in found.items():
        print(f"| {name} | {seconds * 1e6:,.1f} us | {seconds / ours[1][0]:,.0f} | {step * 1e3:.1f} ms |")


if __name__ == "__main__":
    main()
