"""scalecalc from Python: the answers of the command line as dicts and pandas frames.

    import scalecalc
    answer = scalecalc.ask("train llama3-70b", hw="h100-sxm", chips=64, tokens="1T")
    answer["best"]["plan"]["step_time_s"]
    scalecalc.frame("serve llama3-70b", hw="h100-sxm,h200", chips=8)

Flags are keyword arguments with `_` for `-`; True is a flag without a value, a list one that is repeated. A command line
may also be one text, or a list of words. The library runs inside this process: nothing is started, no file is written but
those that flags name.
"""
import ctypes
import io
import json
import pathlib
import shlex

__all__ = ["ask", "frame", "run", "Error", "NothingFits", "version"]


class Error(Exception):
    """A question that was not answered: `status` is the program's exit status, the text is what the program says, hints
    included; `problems` has each problem with its `message`, `hint` and place as a dict, `hints` their hints; `answer` is the
    document where there is one (of a check that failed, too)."""

    def __init__(self, status, message, answer=None):
        super().__init__(message)
        self.status = status
        self.answer = answer
        self.problems = (answer or {}).get("diagnostics", [])
        self.hints = [problem["hint"] for problem in self.problems if problem.get("hint")]


class NothingFits(Error):
    """Well asked, and nothing does it; `answer` says why, and what would (`ask` alone)."""


def _load():
    name = "libscalecalc.so.0"
    here = pathlib.Path(__file__).resolve()
    # Of a tarball: PREFIX/lib/python3/dist-packages/scalecalc.py beside PREFIX/lib/libscalecalc.so.0.
    for place in (*(str(parent / name) for parent in here.parents[:4]), name):
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as error:
            failed = error
    else:
        raise ImportError(f"{name} is neither beside this module nor where libraries are looked for: {failed}")
    library.scalecalc_ask.restype = ctypes.c_void_p
    library.scalecalc_ask.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    library.scalecalc_free.argtypes = [ctypes.c_void_p]
    library.scalecalc_status.argtypes = [ctypes.c_void_p]
    for of in ("output", "messages"):
        function = getattr(library, f"scalecalc_{of}")
        function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    library.scalecalc_version.restype = ctypes.c_char_p
    return library


_library = _load()


def version():
    return _library.scalecalc_version().decode()


def _words(question, flags):
    words = shlex.split(question) if isinstance(question, str) else [str(word) for word in question]
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(flag)
            elif one is not False and one is not None:
                words.append(f"{flag}={one}")
    return words


def run(question, **flags):
    """(status, standard output, standard error), whatever they are."""
    words = _words(question, flags)
    for word in words:
        if "\0" in word:
            return 2, "", f"error: a word of the question has a NUL character after {word.split(chr(0))[0]!r}\n"
    array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    answer = _library.scalecalc_ask(len(words), array)
    if not answer:
        raise MemoryError
    try:
        return (_library.scalecalc_status(answer), _library.scalecalc_output(answer).decode(),
                _library.scalecalc_messages(answer).decode())
    finally:
        _library.scalecalc_free(answer)


def ask(question, **flags):
    """The JSON document of the answer (docs/schema) as a dict."""
    status, output, messages = run(question, **flags, json=True)
    document = json.loads(output) if output else None
    if status == 0:
        return document
    if status == 3:
        raise NothingFits(status, messages.strip(), document)
    raise Error(status, _said(document) or messages.strip(), document)


def _said(document):
    """As the program writes it: each problem at its place, its hint below it."""
    lines = []
    for problem in (document or {}).get("diagnostics", []):
        place = ":".join(str(problem[key]) for key in ("file", "line", "column") if problem.get(key))
        lines.append(f"{place}: {problem['message']}" if place else problem["message"])
        if problem.get("hint"):
            lines.append(f"hint: {problem['hint']}")
    return "\n".join(lines)


def frame(question, **flags):
    """The records of the answer (plans, points, systems, ...) as a pandas frame, in base units: the columns of CSV."""
    import pandas
    status, output, messages = run(question, **flags, output="csv")
    if status != 0:
        raise (NothingFits if status == 3 else Error)(status, messages.strip())
    return pandas.read_csv(io.StringIO(output))
