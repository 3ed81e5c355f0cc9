"""Twenty questions, by name, that stand for what people ask: the guard against a search that grows slower."""
import os
import resource
import subprocess

QUESTIONS = {
    "train-70b-v5p": "train llama3-70b --chips 8960 --hw tpu-v5p",
    "train-405b-16k": "train llama3.1-405b --chips 16384 --hw h100-sxm",
    "train-405b-128k": "train llama3.1-405b --chips 131072 --hw h100-sxm",
    "train-deepseek-v3": "train deepseek-v3 --chips 2048 --hw h800",
    "train-qwen3-235b": "train qwen3-235b-a22b --chips 1152 --hw gb200",
    "train-gpt3-any": "train gpt3-175b --chips 4096 --hw a100-80g --stack any",
    "train-8b-64": "train llama3-8b --chips 64 --hw h100-sxm",
    "train-mixtral": "train mixtral-8x7b --chips 256 --hw h100-sxm",
    "train-nothing-fits": "train deepseek-v3 --chips 4 --hw h100-sxm",
    "train-pinned": "train llama3.1-405b --chips 16384 --hw h100-sxm --fix tp=8,pp=16",
    "sensitivity-70b": "sensitivity llama3-70b --chips 256 --hw h100-sxm",
    "compare-deadline": "compare llama3-8b --hw h100-sxm,tpu-v5p --deadline 30d",
    "rl-8b": "rl llama3.1-8b --chips 64 --hw h100-sxm --prompt 512 --generate 1024",
    "design-512": "model design --chips 512 --hw h100-sxm --deadline 30d",
    "serve-70b": "serve llama3-70b --hw h100-sxm --chips 8",
    "validate": "validate",
    "roofline": "roofline matmul 4096x8192x8192 --hw h100-sxm",
    "hw-list": "hw list",
    "model-list": "model list",
    "version": "--version",
}


def words(binary, question):
    return [str(binary), *QUESTIONS[question].split()]


def on_one_core(command):
    """Where threads wait for each other, counts depend on the machine; on one core there are none."""
    core = min(os.sched_getaffinity(0))
    return ["taskset", "-c", str(core), *command]


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    status = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if status.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: {status.stderr.decode()}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
