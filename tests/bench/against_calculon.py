"""Candidates per second of scalecalc and of calculon (github.com/calculon-ai/calculon) for one question, on one core.

usage: against_calculon.py CALCULON_CHECKOUT SCALECALC [SECONDS]

Prints the table of docs/performance.md. Needs python3-psutil and python3-numpy, which calculon imports. calculon
searches with its own command, llm-optimal-execution; of the parameter sets that it hands to its process pool a sample,
in shuffled order with a fixed seed, runs in this process until SECONDS of processor time are over (120 unless given).
Its logging is off by logging.disable: its search gives each candidate a logger without a level, which otherwise makes a
record of every message and drops it. How many candidates its whole search has is counted by the same command with
--debug, which loops without costing."""
import argparse
import datetime
import json
import logging
import os
import pathlib
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import types

CHIPS, BATCH = 4096, 4096  # of GPT-3 175B
QUESTION = ["train", "gpt3-175b", "--hw", "a100-80g", "--chips", str(CHIPS), "--batch-seqs", str(BATCH),
            "--batch-tolerance", "0", "--seq", "2048", "--precision", "fp16"]
REPETITIONS = 5


def processor_seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class OneProcess:
    """Stands where calculon makes its process pool."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.used = 0.0
        self.counts = [0, 0, 0]  # all, costed, refused

    def __call__(self, _processes):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def starmap(self, search, parameters):
        order = list(parameters)
        random.Random(1).shuffle(order)
        found = []
        start = processor_seconds(resource.RUSAGE_SELF)
        for words in order:
            found.append(search(*words))
            self.used = processor_seconds(resource.RUSAGE_SELF) - start
            if self.seconds is not None and self.used > self.seconds:
                break
        self.counts = [sum(one[i] for one in found) for i in (1, 2, 3)]
        return found


def calculon(checkout, seconds):
    """(candidates run, costed, refused, processor seconds, candidates of the whole search)"""
    sys.path.insert(0, str(checkout))
    sys.modules.setdefault("pandas", types.ModuleType("pandas"))  # for a command that is not run
    from calculon.llm import optimal_execution  # the checkout is known only now

    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser()
    optimal_execution.OptimalExecution.create_parser(parser.add_subparsers())

    def command(*more, budget):
        with tempfile.TemporaryDirectory() as place:
            args = parser.parse_args(["llm-optimal-execution", str(checkout / "models/gpt3-175B.json"), str(CHIPS),
                                      str(BATCH), "float16", str(checkout / "systems/a100_80g.json"),
                                      str(pathlib.Path(place) / "best.json"), "--noneok", *more])
            pool = OneProcess(budget)
            optimal_execution.mp.Pool = pool
            args.func(logging.getLogger(), args)
            return pool

    whole = command("--debug", budget=None).counts[0]
    pool = command(budget=seconds)
    return *pool.counts, pool.used, whole


def scalecalc(binary):
    """(candidates, costed in full, processor seconds of the whole command: the median)"""
    times = []
    for _ in range(REPETITIONS):
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        done = subprocess.run([binary, *QUESTION, "--json", "--quiet"], capture_output=True, check=True)
        times.append(processor_seconds(resource.RUSAGE_CHILDREN) - before)
        search = json.loads(done.stdout)["search"]
    return search["candidates"], search["evaluated"], statistics.median(times)


def text_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main():
    checkout, binary = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve())
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 120.0
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ours, evaluated, our_time = scalecalc(binary)
    ran, good, bad, their_time, whole = calculon(checkout, seconds)
    rate, their_rate = ours / our_time, ran / their_time
    print(f"Conditions: {datetime.date.today():%Y-%m}, one core of {processor()}, Python {platform.python_version()}, "
          f"{text_of([binary, '--version'])}.\n")
    print("| | candidates run | processor time | candidates a second | its whole search | whole search takes |")
    print("|---|--:|--:|--:|--:|--:|")
    print(f"| calculon | {ran:,} ({good:,} costed, {bad:,} refused) | {their_time:.1f} s | {their_rate:,.0f} | "
          f"{whole:,} | {whole / their_rate / 3600:.1f} h by that rate |")
    print(f"| scalecalc | {ours:,} ({evaluated:,} costed in full) | {our_time:.3f} s | {rate:,.0f} | {ours:,} | "
          f"{our_time:.3f} s |")
    print(f"\nRatio of the rates: {rate / their_rate:,.0f}; counting of ours only those costed in full: "
          f"{evaluated / our_time / their_rate:,.0f}.")


main()
