"""The advice over a grid of questions: 10 models on 6 chips, 16 to 256 chips of each. Reports what the first and the
recommended plan of each use, how many recommend what no measured run shows (and how many of these because nothing else
fits), and how many leave no room in memory.

usage: first_plans.py BINARY
"""
import collections
import json
import subprocess
import sys

MODELS = ["llama3-8b", "llama3-70b", "llama3.1-405b", "gemma-2-27b", "qwen2.5-72b", "mixtral-8x7b", "mixtral-8x22b",
          "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"]
CHIPS = ["h100-sxm", "gb200", "mi300x", "tpu-v5p", "tpu-v6e", "gaudi3"]
COUNTS = [16, 64, 256]


def ask(binary, model, chip, count):
    words = [binary, "train", model, "--hw", chip, "--chips", str(count), "--json", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def main():
    codes, used, unmeasured, tight, asked = (collections.Counter() for _ in range(5))
    for model in MODELS:
        for chip in CHIPS:
            for count in COUNTS:
                code, document = ask(sys.argv[1], model, chip, count)
                codes[code] += 1
                if code != 0:
                    continue
                best = document["best"]
                asked[document["query"]["stack_release"]] += 1
                for name, plan in (("first", document["plans"][0]), ("recommended", best["plan"])):
                    for mechanism in plan["mechanisms"]:
                        used[name, mechanism] += 1
                    none = [e["mechanism"] for e in plan["evidence"] if not e["measured"]]
                    if none:
                        unmeasured[name] += 1
                        if name == "recommended":
                            forced = best["only_unmeasured"]
                            unmeasured["recommended, nothing else fits"] += forced
                            print(f"unmeasured: {model} on {count} {chip}: {', '.join(none)}"
                                  f"{' (nothing else fits)' if forced else ''}")
                tight["no room" if not best["has_room"] else "room"] += 1
    print("exit statuses", dict(codes))
    print("software asked", dict(asked))
    for name in ("first", "recommended"):
        print(name, {m: n for (which, m), n in used.most_common() if which == name})
    print("unmeasured", dict(unmeasured), "memory of the recommended", dict(tight))


if __name__ == "__main__":
    main()
