"""Builds the documents as a site and follows every link of it, anchors too. Usage: site.py ROOT SITE"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT, SITE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SOURCE = ROOT / "build" / "site-source"
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


def main():
    staged()
    made = subprocess.run(["mkdocs", "build", "--strict", "--clean", "--quiet", "--config-file", ROOT / ".mkdocs.yml"],
                          capture_output=True, text=True, cwd=ROOT, check=False)
    problems = [line for line in (made.stdout + made.stderr).splitlines() if line.strip()] if made.returncode else []
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
    print("\n".join(problems) or f"{len(pages)} pages, {followed} links followed: {SITE}/index.html")
    return 1 if problems else 0


sys.exit(main())
