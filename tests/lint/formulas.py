"""Formulas of the documents as TeX. In the sources they are code spans, to be read as text anywhere: `T = b S / cp`, with x
for a product, juxtaposition too, ^ for a power and / for a fraction of what stands on its two sides. On the site they are
typeset. What does not read as a formula stays what it is."""
import re

FORMULA = re.compile(r" [x/+<>=-] | [<>]= |\^")
TOKEN = re.compile(r"\s*(?:(\d[\d,]*(?:\.\d+)?%?)|([A-Za-z][A-Za-z0-9_]*(?:[.'][A-Za-z0-9_]+)*'?)|(<=|>=|[-+/^()\[\],=<>|]))")
RELATIONS = {"=": "=", "<": "<", ">": ">", "<=": r"\le", ">=": r"\ge"}
FUNCTIONS = {"max": r"\max", "min": r"\min", "log": r"\log", "exp": r"\exp", "log2": r"\log_2"}
SUMS = {"sum": r"\textstyle\sum "}


# Words that stand beside each other are one name, "HBM bandwidth", and not a product; these short ones are none of them.
DEGREES = {"cp", "dp", "ep", "etp", "pp", "tp", "vpp", "mb", "ga", "top_k"}
LINKS = {"of", "its", "all", "on", "in", "at", "a", "to", "per", "over"}


class NoFormula(ValueError):
    pass


def tokens(text):
    out, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise NoFormula(f"{text[at:]!r} in {text!r}")
        number, name, sign = match.groups()
        out.append(("number", number) if number else ("name", name) if name else ("sign", sign))
        if name and match.end() < len(text) and text[match.end()] in "([" and match.end() > match.start():
            out[-1] = ("call", name)
        at = match.end()
    return named(out)


def is_word(kind, text):
    return kind == "name" and (text in LINKS or (re.fullmatch(r"[A-Za-z']{3,}", text) and text not in DEGREES))


def named(found):
    """With names of several words as one; a link alone is a symbol."""
    out, run = [], []

    def close():
        if len(run) > 1:
            out.append(("name", " ".join(run)))
        else:
            out.extend(("name", word) for word in run)
        run.clear()
    for kind, text in found:
        if is_word(kind, text):
            run.append(text)
        else:
            close()
            out.append((kind, text))
    close()
    return out


def symbol(name):
    if len(name) == 1:
        return name
    if len(name) == 2 and name[1].isdigit():
        return f"{name[0]}_{name[1]}"
    return (r"\text{" if " " in name else r"\mathrm{") + name.replace("_", r"\_") + "}"


class Reader:
    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def peek(self, *signs):
        return self.at < len(self.tokens) and self.tokens[self.at][0] == "sign" and self.tokens[self.at][1] in signs

    def peek_times(self):
        return self.at < len(self.tokens) and self.tokens[self.at] == ("name", "x") and 0 < self.at < len(self.tokens) - 1 \
            and not (self.tokens[self.at - 1][0] == "sign" and self.tokens[self.at - 1][1] not in ")]")

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1][1]

    def statement(self):
        out = self.sum()
        while self.peek(*RELATIONS):
            out += f" {RELATIONS[self.take()]} " + self.sum()
        return out

    def sum(self):
        out = "-" if self.peek("-") and self.take() else ""
        out += self.product()
        while self.peek("+", "-"):
            out += f" {self.take()} " + self.product()
        return out

    def product(self):
        done, last = [], self.factors()
        while True:
            if self.peek_times():
                self.take()
                done.append(last)
                last = self.factors()
            elif self.peek("/"):
                self.take()
                last = r"\frac{" + bare(last) + "}{" + bare(self.power()) + "}"
                if self.starts():
                    last += r"\," + self.factors()
            else:
                return r" \times ".join([*done, last])

    def starts(self):
        if self.at >= len(self.tokens) or self.peek_times():
            return False
        kind, text = self.tokens[self.at]
        return kind != "sign" or text in "(["

    def factors(self):
        out = [self.power()]
        while self.starts():
            out.append(self.power())
        return r"\,".join(out)

    def power(self):
        out = self.factor()
        while self.peek("^"):
            self.take()
            minus = "-" if self.peek("-") and self.take() else ""
            out += "^{" + minus + bare(self.factor()) + "}"
        return out

    def factor(self):
        if self.at >= len(self.tokens):
            raise NoFormula("it ends where a term is due")
        kind, text = self.tokens[self.at]
        if kind == "number":
            return self.take().replace(",", "{,}").replace("%", r"\%")
        if kind == "name":
            return SUMS.get(text) and (self.take(), SUMS[text])[1] or symbol(self.take())
        if kind == "call":
            self.take()
            if text == "sqrt":
                return r"\sqrt{" + bare(self.group()) + "}"
            return FUNCTIONS.get(text, symbol(text)) + self.group(commas=True)
        if text in "([":
            return self.group()
        raise NoFormula(f"{text!r} where a term is due")

    def group(self, commas=False):
        opening = self.take()
        closing = ")" if opening == "(" else "]"
        parts = [self.statement()]
        while self.peek(","):
            self.take()
            parts.append(self.statement())
        if not self.peek(closing) or (len(parts) > 1 and not commas and opening == "("):
            raise NoFormula(f"{opening} without {closing}")
        self.take()
        return rf"\left{opening}" + ",\\; ".join(parts) + rf"\right{closing}"


def bare(text):
    """Without the parentheses around all of it, which a fraction's line or a small size replace."""
    if not text.startswith(r"\left(") or not text.endswith(r"\right)"):
        return text
    inner = text[len(r"\left("):-len(r"\right)")]
    depth = 0
    for match in re.finditer(r"\\(left|right)", inner):
        depth += 1 if match[1] == "left" else -1
        if depth < 0:
            return text
    return inner if depth == 0 else text


def tex(text):
    """The formula of a code span; None where it is none."""
    if not FORMULA.search(text) or "--" in text or re.search(r"[a-z]+://|\.(cpp|h|py|yaml|md)\b|[:;{}$\"*~]", text):
        return None
    try:
        reader = Reader(text.replace("\n", " "))
        out = reader.statement()
    except NoFormula:
        return None
    return out if reader.at == len(reader.tokens) else None


def typeset(markdown):
    """A document with its formulas as elements that KaTeX fills, and how many."""
    count = 0

    def replaced(match):
        nonlocal count
        formula = None if match[1] else tex(match[2])
        if formula is None:
            return match[0]
        count += 1
        text = formula.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
        for sign in "\\_*[]`":
            text = text.replace(sign, f"&#{ord(sign)};")
        return f'<span class="formula">{text}</span>'
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!`)()`([^`]+)`(?!`)", replaced, parts[i])
    return "".join(parts), count
