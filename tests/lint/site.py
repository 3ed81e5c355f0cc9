"""Builds the documents as a site, follows every link of it, anchors too, and has its formulas typeset in a browser, where there
is one. Usage: site.py ROOT SITE CHARTS, the last the directory with KaTeX's archive (src/cmake/fetch_charts.cmake)."""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse

import formulas

ROOT, SITE, CHARTS = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SOURCE = SITE.with_name(SITE.name + "-source")
TYPESET = ["model.md"]
KATEX = re.compile(r"package/dist/(katex\.min\.(?:js|css)|fonts/.*\.woff2)")
RENDER = """document.querySelectorAll(".formula").forEach(e => katex.render(e.textContent, e, {throwOnError: false}));
"""
LINK = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)#\s]+)")


def staged():
    """docs/, the README as its front page, and what they link to beside them."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    (SOURCE / "index.md").write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    for page in SOURCE.rglob("*.md"):
        front = page == SOURCE / "index.md"
        original = ROOT / "README.md" if front else ROOT / "docs" / page.relative_to(SOURCE)

        def moved(match):
            target = (original.parent / match[2]).resolve()
            if target == ROOT / "README.md":
                return match[1] + os.path.relpath(SOURCE / "index.md", page.parent)
            if target.is_relative_to(ROOT / "docs"):
                there = SOURCE / target.relative_to(ROOT / "docs")
            else:
                there = SOURCE / "files" / target.relative_to(ROOT)
                if target.is_file():
                    there = there.with_name(there.name + ".txt")  # shown, not offered for saving
                    there.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(target, there)
            if target.is_dir():  # a page that lists it
                there = there / "list.md"
                there.parent.mkdir(parents=True, exist_ok=True)
                names = sorted(f.name for f in target.iterdir())
                there.write_text(f"# {target.relative_to(ROOT)}\n\n" + "".join(f"- `{n}`\n" for n in names), encoding="utf-8")
            return match[1] + os.path.relpath(there, page.parent)
        page.write_text(LINK.sub(moved, page.read_text(encoding="utf-8")), encoding="utf-8")


def with_formulas():
    """The pages whose formulas are typeset, and how many there are in each; none without KaTeX."""
    there = SOURCE / "assets" / "katex"
    (there / "fonts").mkdir(parents=True)
    archives = sorted(CHARTS.glob("katex-*.tgz"))
    if not archives:
        for name in ("katex.min.js", "katex.min.css", "typeset.js"):
            (there / name).write_text("", encoding="utf-8")
        print(f"no KaTeX in {CHARTS} (./dev charts): formulas stay text")
        return {}
    with tarfile.open(archives[-1]) as archive:
        for member in archive:
            if match := KATEX.fullmatch(member.name):
                (there / match[1]).write_bytes(archive.extractfile(member).read())
    (there / "typeset.js").write_text(RENDER, encoding="utf-8")
    counts = {}
    for name in TYPESET:
        page = SOURCE / name
        text, counts[name] = formulas.typeset(page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
    return counts


def typeset_problems(counts):
    """What a browser makes of them."""
    browser = shutil.which("chromium")
    for name, count in counts.items() if browser else []:
        page = SITE / pathlib.Path(name).with_suffix(".html")
        with tempfile.TemporaryDirectory() as home:  # what a browser keeps of itself goes with it
            shown = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()],
                                   capture_output=True, text=True, check=False, timeout=120,
                                   env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}).stdout
        done, wrong = shown.count('class="katex-html"'), re.findall(r'class="katex-error"[^>]*title="([^"]*)', shown)
        if done != count or wrong:
            yield f"{name}: {done} of {count} formulas are typeset: {wrong[:5]}"


def outside_the_navigation():
    """Pages of docs/ that nothing in the list of contents leads to."""
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")))
    return sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")
                  if str(page.relative_to(ROOT / "docs")) not in listed)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.outside = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.anchors.update(filter(None, (of.get("id"), of.get("name"))))
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        loaded = of.get("src") or (of.get("href") if tag == "link" and of.get("rel") in ("stylesheet", "preload") else None)
        if loaded and re.match(r"https?:|//", loaded):
            self.outside.append(loaded)


def configuration():
    """The site's, for this place."""
    text = (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^docs_dir: .*$", lambda _: f"docs_dir: {SOURCE}", text)
    text = re.sub(r"(?m)^site_dir: .*$", lambda _: f"site_dir: {SITE}", text)
    file = SITE.with_name(SITE.name + ".yml")
    file.write_text(text, encoding="utf-8")
    return file


def main():
    if shutil.which("mkdocs") is None:
        print("mkdocs is not installed: the site is not built")
        return 77
    SITE.parent.mkdir(parents=True, exist_ok=True)
    staged()
    counts = with_formulas()
    made = subprocess.run(["mkdocs", "build", "--strict", "--clean", "--quiet", "--config-file", configuration()],
                          capture_output=True, text=True, cwd=ROOT, check=False)
    problems = [f"docs/{page} is nowhere in the navigation of .mkdocs.yml" for page in outside_the_navigation()]
    problems += [line for line in (made.stdout + made.stderr).splitlines() if line.strip()] if made.returncode else []
    pages = {p: Page(p.read_text(encoding="utf-8")) for p in SITE.rglob("*.html")}
    followed = 0
    for path, page in pages.items():
        name = path.relative_to(SITE)
        problems += [f"{name}: loads {url}" for url in page.outside]
        for link in page.links if name.name != "404.html" else []:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link in (".", ""):
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            followed += 1
            if not target.exists():
                problems.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors | {"__"}:
                problems.append(f"{name}: {link}: no such heading")
    if made.returncode == 0:
        problems += typeset_problems(counts)
    print("\n".join(problems) or f"{len(pages)} pages, {followed} links followed, {sum(counts.values())} formulas typeset: "
          f"{SITE}/index.html")
    return 1 if problems else 0


sys.exit(main())
