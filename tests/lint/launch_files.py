"""Launch files of every framework, written by the program for a few questions, in real parsers of their formats; their
degrees against the chips; names of users in them; and every argument of the tables of src/launch against the list of
where frameworks define them (tests/data/launch/arguments.yaml).
Usage: launch_files.py SOURCE_DIR BINARY"""
import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import yaml

SOURCE = pathlib.Path(sys.argv[1])
BINARY = pathlib.Path(sys.argv[2]).resolve()
DOCUMENT = re.compile(r"^cat > (\S+) <<'END_OF_FILE'\n(.*?)^END_OF_FILE\n", re.M | re.S)
PROBLEMS: list[str] = []

TRAINING = {
    "megatron": "llama3-8b --hw h100-sxm --chips 16 --stack megatron --fix tp=2,pp=2",
    "megatron-bridge": "mixtral-8x7b --hw h100-sxm --chips 64 --stack nemo --fix pp=1",
    "torchtitan": "llama3-8b --hw h100-sxm --chips 16 --stack torchtitan@0.2 --fix pp=1,zero=3",
    "deepspeed": "llama3-8b --hw h100-sxm --chips 16 --stack deepspeed --fix tp=1,pp=1,remat=full,loss=whole",
    "accelerate": "llama3-8b --hw h100-sxm --chips 16 --stack accelerate --fix tp=1",
    "nanotron": "llama3-8b --hw h100-sxm --chips 16 --stack nanotron",
    "maxtext": "llama3-8b --hw tpu-v5p --chips 64 --stack maxtext --fix zero=3",
    "jax": "llama3-8b --hw tpu-v5p --chips 64 --stack maxtext --fix zero=3,pp=1,cp=1,loss=whole,offload=none",
}
# Adapters, of those that can say them.
ADAPTERS = {
    "megatron-bridge": "llama3-8b --hw h100-sxm --chips 8 --stack nemo --lora 16 --lora-targets q,v,up --batch-seqs 32 --seq 4096",
    "accelerate": "llama3-8b --hw h100-sxm --chips 8 --stack accelerate --lora 64 --base nf4 --batch-seqs 32 --seq 4096",
}
# Pools that an engine starts by itself.
POOLS = {"trtllm": "mixtral-8x7b --hw h100-sxm --chips 8 --engine trtllm --disaggregate on"}
SERVING = {
    "vllm": "mixtral-8x7b --hw h100-sxm --chips 8 --engine vllm",
    "sglang": "mixtral-8x7b --hw h100-sxm --chips 8 --engine sglang",
    "trtllm": "mixtral-8x7b --hw h100-sxm --chips 8 --engine trtllm",
    "dynamo": "mixtral-8x7b --hw h100-sxm --chips 8 --engine vllm --disaggregate on",
    "llm-d": "mixtral-8x7b --hw h100-sxm --chips 8 --engine vllm --disaggregate on",
}


def problem(text):
    PROBLEMS.append(text)


def ask(*words):
    reply = subprocess.run([BINARY, *words], capture_output=True, text=True, check=False)
    if reply.returncode != 0:
        problem(f"{' '.join(map(str, words))}: exit {reply.returncode}: {reply.stderr.strip()}")
    return reply.stdout


def parsed(name, text):
    """What a real parser of the format makes of it."""
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith((".yaml", ".yml")):
        return yaml.safe_load(text)
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return {target.id: node.value.value for node in ast.parse(text).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) for target in node.targets}


def shell_is_right(what, text):
    reply = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if reply.returncode != 0:
        problem(f"{what}: bash -n: {reply.stderr.strip()}")


def documents(what, text, file):
    """The files that a launch file holds or is."""
    if not text.startswith("#!"):
        return {file: parsed(file, text)}
    shell_is_right(what, text)
    return {name: parsed(name, content) for name, content in DOCUMENT.findall(text)}


def degrees_multiply(framework, text, found, chips):
    """Worked out from the file alone, by the framework's own rule."""
    def flag(name, otherwise=1):
        match = re.search(rf"{name} (\d+)", text)
        return int(match.group(1)) if match else otherwise
    if framework == "megatron":
        ways = flag("--tensor-model-parallel-size") * flag("--pipeline-model-parallel-size") * flag("--context-parallel-size")
        data = chips / ways
        ok = flag("--nnodes") * flag("--nproc_per_node") == chips and chips % ways == 0 and \
            flag("--global-batch-size") % (flag("--micro-batch-size") * data) == 0
    elif framework == "torchtitan":
        p = found["train.toml"]["parallelism"]
        ok = p["data_parallel_replicate_degree"] * p["data_parallel_shard_degree"] * p["tensor_parallel_degree"] * \
            p["context_parallel_degree"] * p["pipeline_parallel_degree"] == chips
    elif framework == "maxtext":
        ok = 1
        for key, value in found["config.yml"].items():
            if key.startswith(("ici_", "dcn_")) and key.endswith("_parallelism"):
                ok *= value
        ok = ok == chips
    elif framework == "jax":
        c = found["sharding.py"]
        ok = c["DATA"] * c["FSDP"] * c["EXPERT"] * c["CONTEXT"] * c["TENSOR"] == chips
    elif framework == "accelerate":
        c = found["fsdp.yaml"]
        p = c["parallelism_config"]
        ok = c["num_processes"] == chips and chips == p["parallelism_config_dp_replicate_size"] * \
            p["parallelism_config_dp_shard_size"] * p["parallelism_config_tp_size"] * p["parallelism_config_cp_size"]
    elif framework == "nanotron":
        p = found["config.yaml"]["parallelism"]
        ok = p["dp"] * p["tp"] * p["pp"] * p["context_parallel_size"] == chips
    elif framework == "deepspeed":
        c = found["ds_config.json"]
        data = chips / (c["tensor_parallel"]["autotp_size"] * c["sequence_parallel_size"] * c["pipeline"]["stages"])
        ok = c["train_batch_size"] == c["train_micro_batch_size_per_gpu"] * c["gradient_accumulation_steps"] * data
    else:
        return
    if not ok:
        problem(f"{framework}: degrees do not multiply to {chips} chips:\n{text}")


FILES = {"megatron-bridge": "recipe.yaml", "torchtitan": "train.toml", "nanotron": "config.yaml", "maxtext": "config.yml",
         "jax": "sharding.py"}


KNOWN = yaml.safe_load((SOURCE / "tests/data/launch/arguments.yaml").read_text())


def keys_of(node):
    if isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from keys_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from keys_of(value)


def keys_are_known(kind, document):
    """Every key of a document that is written stands where that kind of document is defined."""
    listed = {str(name) for part in KNOWN[kind] for name in part["names"]}
    for key in sorted(set(keys_of(document)) - listed):
        problem(f"{kind}: where is {key} defined? (tests/data/launch/arguments.yaml)")


def check_frameworks():
    for framework, question in TRAINING.items():
        words = ["train", *question.split(), "--top", "1", "--plan", "1"]
        text = ask(*words, "--export", framework)
        if not text:
            continue
        for part in ("scalecalc", "asked: scalecalc train", "predicted: step", "arguments: "):
            if part not in text:
                problem(f"{framework}: the stamp does not say {part!r}")
        chips = int(re.search(r"--chips (\d+)", question).group(1))
        try:
            degrees_multiply(framework, text, documents(framework, text, FILES.get(framework, "")), chips)
        except (ValueError, yaml.YAMLError, SyntaxError, KeyError) as error:
            problem(f"{framework}: {error!r}:\n{text}")
        clusters = ["gke-tpu", "jobset"] if "tpu" in question else ["slurm", "jobset", "leaderworkerset"]
        for cluster in clusters:
            wrapped = ask(*words, "--export", framework, "--cluster", cluster)
            check_cluster(framework, cluster, wrapped)
            if framework not in ("megatron", "maxtext") or not wrapped:
                continue
            back = reads_back(f"{framework} on {cluster}", question, wrapped)
            direct = json.loads(ask(*words, "--json"))["plans"][0]["layout"]
            other = {k: v for k, v in (back["from"]["reference"] if back else {}).items() if direct[k] != v}
            if other or not back:
                problem(f"{framework} on {cluster}: {direct} reads back with {other}")
    for framework, question in SERVING.items():
        text = ask("serve", *question.split(), "--export", framework)
        if text:
            documents(framework, text, "values.yaml")
        if text and framework in KNOWN and not text.startswith("#!"):
            keys_are_known(framework, yaml.safe_load(text))


# Questions whose files met a check of the framework itself, and what that check asks of them: read in its source, not here.
STARTS = {
    "megatron": ["llama3-70b --hw h100-sxm --chips 256 --precision fp8", "deepseek-v3 --hw h100-sxm --chips 512",
                 "llama3-70b --hw h100-sxm --chips 256 --precision fp8 --fp8-recipe tensorwise", "gpt3-13b --hw h100-sxm --chips 64"],
    "deepspeed": ["llama3-70b --hw h100-sxm --chips 64", "mixtral-8x7b --hw h100-sxm --chips 64",
                  "llama3-8b --hw h100-sxm --chips 64 --fix tp=2"],
    "torchtitan": ["qwen3-30b-a3b --hw h100-sxm --chips 64 --fix ep=1,tp=2"],
}
SERVES = {
    "vllm": ["llama3.1-70b --hw h100-sxm --chips 8 --batch 32 --speculative draft=llama3.1-8b,k=4,accept=0.7",
             "deepseek-v3 --hw h200 --chips 16 --batch 512 --fix attention_dp=16,ep=16",
             "llama3-8b --hw h100-sxm --chips 1 --max-num-seqs 32"],
    "sglang": ["gpt-oss-120b --hw h100-sxm --chips 4 --engine sglang",
               "deepseek-v3 --hw h200 --chips 8 --engine sglang --fix tp=8,ep=4,etp=2 --batch 16",
               "deepseek-v3 --hw h200 --chips 16 --engine sglang --redundant-experts 32 --expert-load zipf:0.6"],
}


def option(text, name):
    word = r"(?!-)[^\s\\]+"
    match = re.search(rf"(?<![\w-]){name} ('[^']*'|{word}(?: {word})*)", text)
    return match and match.group(1).strip()


def what_would_stop(framework, question, text):
    """Why the framework would refuse the file, or run something else."""
    def number(name, otherwise=1):
        return int(option(text, name) or otherwise)
    if framework == "megatron":
        # transformer_config.py: "Delayed scaling does not support moe_act and layernorm recompute for fp8."
        again = set((option(text, "--recompute-modules") or "").split())
        if option(text, "--fp8-format") and option(text, "--fp8-recipe") in (None, "delayed") and again & {"layernorm", "moe_act"}:
            yield "norms are recomputed under delayed scaling"
        if "deepseek-v3" in question and (number("--moe-router-num-groups"), number("--moe-router-group-topk")) != (8, 4):
            yield "the router has no groups"  # n_group and topk_group of its config.json
        if "gpt3" in question and option(text, "--hidden-dropout") != "0.1":
            yield "dropout is not said"
    elif framework == "deepspeed":
        config = json.loads(DOCUMENT.search(text).group(2))
        # transformers' integrations/deepspeed.py, fill_match
        for key, flag in (("train_micro_batch_size_per_gpu", "--per_device_train_batch_size"),
                          ("gradient_accumulation_steps", "--gradient_accumulation_steps")):
            if config[key] != number(flag):
                yield f"{key} {config[key]} is not {flag}"
        ranks = number("--nnodes") * number("--nproc_per_node")
        batch = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * ranks
        if config.get("train_batch_size", batch) != batch:
            yield f"train_batch_size is not that of {ranks} ranks"
        if config["pipeline"]["stages"] != 1 or config["sequence_parallel_size"] != 1:
            yield "a Trainer has no stages and no sequence ranks"
    elif framework == "torchtitan":
        p = tomllib.loads(DOCUMENT.search(text).group(2) if text.startswith("#!") else text)["parallelism"]
        if p["expert_parallel_degree"] == 1 and p["expert_tensor_parallel_degree"] != p["tensor_parallel_degree"]:
            yield "experts are cut over all tensor ranks"
    elif framework == "vllm":
        said = option(text, "--speculative-config")
        if ("--speculative" in question) != bool(said) or (said and json.loads(said.strip("'"))["num_speculative_tokens"] != 4):
            yield "speculation is not said"
        if "--enable-expert-parallel" in text and number("--data-parallel-size") > 1 and not option(text, "--all2all-backend"):
            yield "every rank gets all tokens"
        if "--max-num-seqs 32" in question and number("--max-num-seqs") != 32:
            yield "sequences are not those asked for"
    elif framework == "sglang":
        # server_args.py, _handle_a2a_moe: the expert ranks become all tensor ranks; models/gpt_oss.py has no DeepEP
        if option(text, "--moe-a2a-backend") and (number("--ep-size") != number("--tp-size") or "gpt-oss" in question):
            yield "DeepEP runs other expert ranks, or none"
        if "--redundant-experts" in question and number("--ep-num-redundant-experts", 0) != 32:
            yield "redundant experts are not said"


def check_starts():
    for command, files in (("train", STARTS), ("serve", SERVES)):
        for framework, questions in files.items():
            for question in questions:
                text = ask(command, *question.split(), "--export", framework)
                for why in what_would_stop(framework, question, text) if text else ():
                    problem(f"{framework}, {question}: {why}:\n{text}")
    refused = subprocess.run([BINARY, "train", *"palm-62b --hw h100-sxm --chips 64 --export megatron".split()],
                             capture_output=True, text=True, check=False)
    if refused.returncode == 0:  # its layers read one norm for attention and MLP, and Megatron's have one for each
        problem("megatron: a model of parallel blocks is written as one of serial blocks")


def check_adapters():
    """The file says the adapters, and reading it asks for the same."""
    for framework, question in ADAPTERS.items():
        text = ask("train", *question.split(), "--top", "1", "--plan", "1", "--export", framework)
        if not text:
            continue
        documents(framework, text, FILES.get(framework, ""))
        words = question.split()
        bare = " ".join(w for i, w in enumerate(words) if not any(
            x.startswith(("--lora", "--base")) for x in words[max(0, i - 1):i + 1]))
        back = reads_back(f"adapters of {framework}", bare, text)
        direct = json.loads(ask("train", *words, "--top", "1", "--plan", "1", "--json"))
        if back and back["query"]["fine_tune"] != direct["query"]["fine_tune"]:
            problem(f"{framework}: {direct['query']['fine_tune']} reads back as {back['query']['fine_tune']}")


def check_pools():
    """Servers of both pools multiply to the chips, and reading the file gives the same pools."""
    for framework, question in POOLS.items():
        text = ask("serve", *question.split(), "--export", framework)
        if not text:
            continue
        found = yaml.safe_load(text)
        keys_are_known(f"{framework}-pools", found)
        chips = sum(p["num_instances"] * p["tensor_parallel_size"] * p["pipeline_parallel_size"]
                    for p in (found["context_servers"], found["generation_servers"]))
        ports = found["context_servers"]["urls"] + found["generation_servers"]["urls"]
        if f"--chips {chips} " not in question or len(set(ports)) != len(ports):
            problem(f"pools of {framework}: {chips} chips, {ports}:\n{text}")
        bare = " ".join(question.split()[:5])
        back = reads_back(f"pools of {framework}", bare, text, "serve")
        direct = json.loads(ask("serve", *question.split(), "--json"))
        if back and (back["best"]["pools"] if "pools" in back["best"] else None) != direct["best"].get("pools"):
            problem(f"pools of {framework}: {direct['best'].get('pools')} reads back as {back['best'].get('pools')}")


def reads_back(what, question, text, command="train"):
    """What a cluster starts says the plan that was written: its headline is that of the pinned question."""
    with tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place) / "launch.yaml"
        file.write_text(text)
        model, *words = question.split()
        free = words[:words.index("--fix")] if "--fix" in words else words
        free = [w for i, w in enumerate(free) if w != "--stack" and (i == 0 or free[i - 1] != "--stack")]
        back = ask(command, model, *free, "--from", file, "-q", "--json")
        if not back:
            return
        answer = json.loads(back)
        said = [a["text"] for a in answer["assumptions"] if a["key"] in ("launch_unread", "launch_open", "launch_differences")]
        if said:
            problem(f"{what}: read back with {said}")
        return answer


def check_cluster(framework, cluster, text):
    what = f"{framework} on {cluster}"
    if cluster == "slurm":
        return shell_is_right(what, text)
    document = yaml.safe_load(text)
    keys_are_known("leaderworkerset" if cluster == "leaderworkerset" else "jobset", document)
    while isinstance(document, dict) and "containers" not in document:
        inner = [v for k, v in document.items() if k in ("spec", "template", "replicatedJobs", "leaderWorkerTemplate", "workerTemplate")]
        document = inner[0] if inner else None
        if isinstance(document, list):
            document = document[0]
    if not document:
        return problem(f"{what}: no container in\n{text}")
    return shell_is_right(what, document["containers"][0]["command"][2])


def check_names():
    """A model's name from a user's file is quoted in every format."""
    name = "it's \"$(touch pwned)\" `x`: [a] #b \\ END_OF_FILE"
    with tempfile.TemporaryDirectory() as directory:
        model = pathlib.Path(directory) / "model.yaml"
        lines = ask("model", "llama3-8b", "--dump-yaml")
        model.write_text(re.sub(r"(?m)^name:.*$", lambda _: "name: " + json.dumps(name), lines, count=1))
        for framework in ("maxtext", "torchtitan"):
            question = TRAINING[framework].split()
            text = ask("train", str(model), *question[1:], "--top", "1", "--plan", "1", "--export", framework)
            if not text:
                continue
            found = parsed(FILES[framework], text)
            said = found["model_name"] if framework == "maxtext" else found["model"]["name"]
            if said != "MODEL" or "put yours there" not in text:
                problem(f"{framework}: a model that it does not know is called {said!r}")
            script = ask("train", str(model), *question[1:], "--top", "1", "--plan", "1", "--export", framework,
                         "--cluster", "jobset")
            check_cluster(framework, "jobset", script)


def check_arguments():
    known = KNOWN
    blocks = {}
    for file in sorted((SOURCE / "configs/stacks").glob("*.yaml")):
        blocks.update(yaml.safe_load(file.read_text()).get("launch", {}))

    def keys_of(rows):
        for row in rows:
            first, second = row.split(" ")[:2]
            if first == "shared":
                owner, name = second.split(".")
                yield from keys_of(blocks[owner]["shared"][name])
            elif first not in ("says", "one"):
                yield first

    seen = {name: set(keys_of(block["rows"])) for name, block in blocks.items() if "rows" in block}
    for framework, keys in seen.items():
        listed = {name for part in known.get(framework, []) for name in part["names"]}
        for key in sorted(keys - listed):
            problem(f"{framework}: where is {key} defined? (tests/data/launch/arguments.yaml)")
        for key in sorted(listed - keys):
            problem(f"{framework}: {key} is listed in arguments.yaml and in no table")


STUB = """#!/usr/bin/env bash
printf '%s\\n' "$(basename "$0")" "$@" > "$RECORDS/$(basename "$0").${SLURM_NODEID:-x}.${SLURM_PROCID:-x}"
"""
SRUN = """#!/usr/bin/env bash
[ "$1" = --mpi=pmix ] && shift
for rank in $(seq 0 $((NODES * TASKS - 1))); do SLURM_PROCID=$rank SLURM_NODEID=$((rank / TASKS)) "$@"; done
"""
SEVERAL = {
    "vllm data ranks": ("serve", "deepseek-v3 --hw h100-sxm --chips 16 --prompt 1024 --generate 256 --fix pp=1", "vllm", "vllm"),
    "vllm dense": ("serve", "llama3-70b --hw h100-sxm --chips 16 --prompt 1024 --generate 256 --fix tp=4,dp=4", "vllm", "vllm"),
    "vllm one rank": ("serve", "llama3.1-405b --hw h100-sxm --chips 16 --prompt 1024 --generate 256 --fix tp=8,pp=2", "vllm", "vllm"),
    "sglang": ("serve", "deepseek-v3 --hw h100-sxm --chips 16 --prompt 1024 --generate 256", "sglang", "python3"),
    "accelerate": ("train", "llama3-8b --hw h100-sxm --chips 16", "accelerate", "accelerate"),
    "trtllm": ("serve", "deepseek-v3 --hw h100-sxm --chips 16 --prompt 1024 --generate 256 --fix tp=1,attention_dp=16",
               "trtllm", "trtllm-llmapi-launch"),
    "deepspeed": ("train", "llama3-8b --hw h100-sxm --chips 16 --fix cp=1,pp=1", "deepspeed", "torchrun"),
    "megatron": ("train", "llama3-8b --hw h100-sxm --chips 16", "megatron", "torchrun"),
}


def started(what, text):
    """What a Slurm script would start on each of its nodes: the commands by node and task, seen by programs of their names."""
    def sbatch(flag):
        return int(re.search(rf"^#SBATCH --{flag}=(\d+)", text, re.M).group(1))
    with tempfile.TemporaryDirectory() as place:
        bin_, records = pathlib.Path(place) / "bin", pathlib.Path(place) / "records"
        bin_.mkdir()
        records.mkdir()
        for name in ("vllm", "python3", "accelerate", "trtllm-llmapi-launch", "torchrun"):
            (bin_ / name).write_text(STUB)
        (bin_ / "srun").write_text(SRUN)
        (bin_ / "scontrol").write_text("#!/usr/bin/env bash\nprintf 'first\\nsecond\\n'\n")
        for file in bin_.iterdir():
            file.chmod(0o755)
        reply = subprocess.run(["bash"], input=text, capture_output=True, text=True, check=False, cwd=place,
                               env={"PATH": f"{bin_}:/usr/bin:/bin", "RECORDS": str(records), "SLURM_JOB_NODELIST": "some",
                                    "NODES": str(sbatch("nodes")), "TASKS": str(sbatch("ntasks-per-node"))})
        if reply.returncode != 0:
            problem(f"{what}: its script ends with {reply.returncode}: {reply.stderr.strip()}")
        return {tuple(file.name.rsplit(".", 2)[1:]): file.read_text().splitlines() for file in records.iterdir()}


def check_nodes():
    """Each node is told its own place, and where the first one is."""
    for what, (command, question, framework, program) in SEVERAL.items():
        text = ask(command, *question.split(), "--export", framework, "--cluster", "slurm")
        if not text:
            continue
        runs = started(what, text)
        by_node = {int(node): words for (node, _), words in runs.items()}
        if set(by_node) != {0, 1} or any(words[0] != program for words in by_node.values()):
            problem(f"{what}: started {runs} by\n{text}")
            continue

        def value(node, flag, words=by_node):
            return words[node][words[node].index(flag) + 1] if flag in words[node] else None
        for rank in ("--node-rank", "--machine_rank", "--data-parallel-start-rank"):
            if value(0, rank) is not None and not (value(0, rank) == "0" and int(value(1, rank)) >= 1):
                problem(f"{what}: {rank} is {value(0, rank)} and {value(1, rank)}")
        for head in ("--master-addr", "--main_process_ip", "--dist-init-addr", "--data-parallel-address", "--rdzv_endpoint"):
            for node in (0, 1):
                if value(node, head) is not None and not value(node, head).startswith("first"):
                    problem(f"{what}: {head} is {value(node, head)} on node {node}")
        if program == "vllm" and ("--headless" in by_node[0] or "--headless" not in by_node[1]):
            problem(f"{what}: one node alone has the API: {by_node}")
        if framework == "trtllm" and len(runs) != 16:
            problem(f"{what}: {len(runs)} ranks are started, not 16")
        knows = any(f in by_node[0] for f in ("--node-rank", "--machine_rank", "--data-parallel-start-rank",
                                              "--rdzv_endpoint")) or framework == "trtllm"
        if not knows:
            problem(f"{what}: nothing tells a node which it is: {by_node[0]}")
        back = pathlib.Path(tempfile.mkdtemp()) / "run.slurm"
        back.write_text(text)
        model, *rest = question.split()
        keep = rest[:rest.index("--fix")] if "--fix" in rest else rest
        ask(command, model, *keep, "--from", str(back))


check_arguments()
check_frameworks()
check_starts()
check_adapters()
check_pools()
check_nodes()
check_names()
print("\n".join(PROBLEMS) or f"{len(TRAINING) + len(SERVING)} frameworks: every file parses, every argument has its place")
sys.exit(1 if PROBLEMS else 0)
