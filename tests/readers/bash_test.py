"""Random arithmetic of a launch script, as the program reads it and as bash computes it. Usage: bash_test.py BINARY
[SEED]; skipped (77) without bash."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

EXPRESSIONS = 150
SET = "X=1+2\nY=-4\n"
OPERATORS = ["+", "-", "*", "/", "%", "**", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||"]
ATOMS = ["0", "1", "2", "3", "7", "63", "64", "0x1f", "017", "9223372036854775807", "9223372036854775808", "2#1011", "X",
         "$X", "${Y}"]


def expression(levels):
    kind = random.random()
    if levels == 0 or kind < 0.25:
        return random.choice(ATOMS)
    if kind < 0.35:
        return f"{random.choice('-+!~')} {expression(levels - 1)}"
    if kind < 0.5:
        return f"({expression(levels - 1)})"
    if kind < 0.6:
        return f"{expression(levels - 1)}?{expression(levels - 1)}:{expression(levels - 1)}"
    return f"{expression(levels - 1)} {random.choice(OPERATORS)} {expression(levels - 1)}"


def of_bash(text):
    done = subprocess.run(["bash", "-c", f"{SET}echo $(( {text} ))"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def of_program(binary, place, text):
    """The value in what is said of a flag that takes no number; nothing where the script is refused for its arithmetic."""
    (place / "run.sh").write_text(f"{SET}torchrun pretrain_gpt.py --recompute-granularity $(( {text} ))\n")
    done = subprocess.run([binary, "train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--from", "run.sh"],
                          cwd=place, capture_output=True, text=True, check=False)
    found = re.search(r"granularity\s+'?(-?\d+)'?", done.stdout + done.stderr)
    return found[1] if found else None


def main():
    if not shutil.which("bash"):
        print("bash is not here")
        return 77
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    binary = os.path.abspath(sys.argv[1])
    differ = known = 0
    with tempfile.TemporaryDirectory() as place:
        for _ in range(EXPRESSIONS):
            text = expression(3)
            expected, found = of_bash(text), of_program(binary, pathlib.Path(place), text)
            known += expected is not None
            if expected != found:
                differ += 1
                print(f"$(( {text} )) is {expected} in bash and {found} here")
    print(f"{EXPRESSIONS} expressions, {known} with a value, {differ} differ")
    return 1 if differ or not known else 0


sys.exit(main())
