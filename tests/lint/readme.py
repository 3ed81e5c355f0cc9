"""The documents against the program: every transcript of README.md and docs/ is run and compared, every relative link
leads somewhere, every formula id of src/ is explained in docs/model.md. Usage: readme.py ROOT BINARY [--update]

In a ```console block a line "$ ./dev run ARGS" is run as BINARY ARGS; other "$" lines are shown, not run. What follows
is its standard output and, after it, its standard error, both as into a pipe. Of that text
  a line "..."            stands for any number of lines, also none;
  a line that ends " ..." stands for a line that starts with what precedes;
  a last line "[exit 3]"  is the exit status (0 if there is none);
Commands that are only shown, in ```sh blocks and in cells of tables, must be answered too (exit 0), up to the first pipe
or redirection; those with words of yours (CHIP, $FILE) and those that another test runs (RUN_ELSEWHERE) are left out.
Blocks ```yaml PATH, ```json PATH and ```sh PATH give the files the commands of the same document find below their current directory.
--update first puts the nearest lines of today's output in the place of those shown, or all of it where these do not make
the block right; read the diff."""
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\S*)[ \t]*(\S*)[^\n]*\n(.*?)^```[ \t]*$", re.M | re.S)
PROMPT = "$ ./dev run "
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")
SHOWN = re.compile(r"`((?:\./dev run|scalecalc) [^`]*)`")
RUN_ELSEWHERE = {"docs/howto/scripts.md", "docs/howto/studies.md", "docs/howto/calibrate.md", "docs/manual/README.md",
                 "docs/case-studies.md"}  # scripts.py, and what it names
FORMULA_ID = re.compile(r"^[ \t]*///? (\[[A-Z][A-Z0-9-]{3,}\])", re.M)


def mask(line):
    return line.rstrip()


def commands(block):
    """(arguments, expected lines, exit status) of each command in a console block."""
    found, lines = [], None
    for line in block.splitlines():
        if line.startswith("$ "):
            lines = []
            if line.startswith(PROMPT):
                found.append((line[len(PROMPT):], lines))
        elif lines is not None:
            lines.append(line)
    for args, expected in found:
        while expected and not expected[-1].strip():
            expected.pop()
        status = re.fullmatch(r"\[exit (\d+)\]", expected[-1]) if expected else None
        if status:
            expected.pop()
        yield args, [mask(line) for line in expected], int(status.group(1)) if status else 0


def same(expected, line):
    return line.startswith(expected.removesuffix(" ...")) if expected.endswith(" ...") else line == expected


def run_length(part, lines):
    """How many lines of `part` agree with the start of `lines`."""
    agree = 0
    while agree < min(len(part), len(lines)) and same(part[agree], lines[agree]):
        agree += 1
    return agree


def difference(expected, actual):
    """The first difference in words, or nothing."""
    parts = [[]]
    for line in expected:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for number, part in enumerate(parts):
        last = number + 1 == len(parts)
        if number == 0:
            starts = [0]
        elif last and part:
            starts = [max(at, len(actual) - len(part))]
        else:
            starts = range(at, len(actual) + 1)
        best = max(starts, key=lambda s: (run_length(part, actual[s:]), -s))
        agree = run_length(part, actual[best:])
        if agree < len(part):
            shown = actual[best + agree] if best + agree < len(actual) else "<end of output>"
            if agree == 0 and number > 0:
                shown = "<no such line>"
            return f"  document: {part[agree]}\n  program:  {shown}"
        at = best + agree
        if last and (part or number == 0) and at < len(actual):
            return f"  document: <end of block>\n  program:  {actual[at]}"
    return ""


def nearest_lines(shown, actual):
    """The lines of a block, each replaced by the line of the output it stands for."""
    out, at, free = [], 0, False
    for line in shown:
        if line == "..." or re.fullmatch(r"\[exit \d+\]", line):
            out.append(line)
            free = True
            continue
        cut = line.endswith(" ...")
        likeness = [difflib.SequenceMatcher(None, line.removesuffix(" ..."), a[:len(line) - 4] if cut else a).ratio()
                    for a in (actual[at:] if free else actual[at:at + 1])]
        best = max(range(len(likeness)), key=lambda i: (likeness[i], -i), default=0)
        if likeness and likeness[best] > 0.5:
            now = actual[at + best]
            if same(line, mask(now)):
                out.append(line)
            else:
                out.append(now[:len(line) - 4].rstrip() + " ..." if cut else now)
            at += best + 1
        else:
            out.append(line)
        free = False
    return out


def run(binary, args, place):
    return subprocess.run([binary, *shlex.split(args)], cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False)


def write_files(text, place):
    for language, file, body in FENCE.findall(text):
        if language in ("yaml", "json", "sh") and file:
            target = pathlib.Path(place) / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")


def update_document(path, binary):
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        write_files(text, place)

        def block(match):
            if match.group(1) != "console":
                return match.group(0)
            out = []
            for part in re.split(r"^(?=\$ )", match.group(3), flags=re.M):
                lines = part.splitlines()
                if lines and lines[0].startswith(PROMPT):
                    done = run(binary, lines[0][len(PROMPT):], place)
                    actual = (done.stdout + done.stderr).splitlines()
                    lines[1:] = nearest_lines(lines[1:], actual)
                    _, expected, _ = next(commands("\n".join(lines)))
                    if difference(expected, [mask(line) for line in actual]):
                        lines[1:] = actual + ([f"[exit {done.returncode}]"] if done.returncode else []) + [""]
                out += lines
            return "```console\n" + "".join(line + "\n" for line in out) + "```"

        path.write_text(FENCE.sub(block, text), encoding="utf-8")


def check_document(path, name, binary):
    """Problems of one document and how many commands it has."""
    text, problems, count = path.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as place:
        write_files(text, place)
        for match in FENCE.finditer(text):
            if match.group(1) != "console":
                continue
            line = text.count("\n", 0, match.start()) + 1
            for args, expected, status in commands(match.group(3)):
                count += 1
                where = f"{name}:{line}: $ ./dev run {args}"
                done = run(binary, args, place)
                actual = [mask(l) for l in (done.stdout + done.stderr).splitlines()]
                found = difference(expected, actual)
                if found:
                    problems.append(f"{where}\n{found}")
                elif done.returncode != status:
                    problems.append(f"{where}\n  document: exit {status}\n  program:  exit {done.returncode}")
    without_code = FENCE.sub("", text)
    problems += [f"{name}: the link {link} leads nowhere" for link in LINK.findall(without_code)
                 if not (path.parent / link).exists()]
    return problems, count


def shown_commands(text):
    """The arguments of commands that are shown, not transcribed."""
    lines = [line for language, file, body in FENCE.findall(text) if language == "sh" and not file
             for line in body.replace("\\\n", " ").splitlines()]
    lines += [cell for line in FENCE.sub("", text).splitlines() if line.startswith("|") for cell in SHOWN.findall(line)]
    for line in lines:
        command = re.match(r"\s*(?:\./dev run|scalecalc) (.*)", line)
        if not command:
            continue
        lexer = shlex.shlex(command.group(1), posix=True, punctuation_chars="|>;&")
        lexer.whitespace_split = True
        every = list(lexer)
        words = tuple(every[:next((i for i, word in enumerate(every) if word[0] in "|>;&"), len(every))])
        # One word names a command.
        if len(words) > 1 and not any(re.fullmatch(r"[A-Z]{2,}|.*[$[{].*|\.\.\.", word) for word in words):
            yield words


def shown_and_wrong(path, name, binary, answered):
    """Of the commands that a document shows those that are not answered; each is asked once."""
    text = path.read_text(encoding="utf-8")
    if name in RUN_ELSEWHERE:
        return
    with tempfile.TemporaryDirectory() as place:
        write_files(text, place)
        for words in shown_commands(text):
            if words in answered:
                continue
            answered.add(words)
            done = run(binary, shlex.join(words), place)
            if done.returncode != 0:
                yield f"{name}: {shlex.join(words)}: exit {done.returncode}: {done.stderr.strip()[:300]}"


def unexplained_formulas(root):
    model = root / "docs" / "model.md"
    explained = model.read_text(encoding="utf-8") if model.exists() else ""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cpp"):
            for tag in FORMULA_ID.findall(path.read_text(encoding="utf-8")):
                if tag not in explained:
                    yield f"{path.relative_to(root)}: {tag} is not in docs/model.md"


def main() -> int:
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    problems, count, answered = list(unexplained_formulas(root)), 0, set()
    for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if "--update" in sys.argv[3:]:
            update_document(path, binary)
        found, ran = check_document(path, path.relative_to(root).as_posix(), binary)
        problems += found
        problems += shown_and_wrong(path, path.relative_to(root).as_posix(), binary, answered)
        count += ran
    if count == 0:
        problems.append("no transcript was found")
    print("\n".join(problems) or f"{count} transcripts agree with the program, {len(answered)} commands shown are answered, links and formula ids hold")
    return 1 if problems else 0


sys.exit(main())
