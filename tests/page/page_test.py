"""The pages of -o html in a headless Chromium: nothing is said on the console, nothing leaves the page, tables sort and
filter, pictures answer the mouse and the keyboard, names from files stay text, and axe-core finds nothing.
Usage: page_test.py BINARY CHARTS [DIRECTORY for screenshots]"""
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, find_chromium  # noqa: E402

BINARY = str(pathlib.Path(sys.argv[1]).resolve())
AXE = next(iter(sorted(pathlib.Path(sys.argv[2]).glob("axe-core-*.tgz"))), None)
SHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
HOSTILE = "</script><script>boom()</script><img src=x onerror=boom()> \" ' & `${boom()}` <!-- \\u2028"

QUESTIONS = {
    "train": ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--tokens", "1T", "--fix", "pp=4", "--batch-seqs", "128"],
    "curve": ["train", "llama3-8b", "--hw", "h100-sxm", "--chips", "16..64*2", "--tokens", "1T", "--pareto"],
    "serve": ["serve", "llama3-70b", "--hw", "h100-sxm", "--chips", "8", "--slo-tpot", "50ms"],
    "torus": ["train", "llama3-8b", "--hw", "tpu-v5p", "--chips", "64", "--top", "3"],
    "compare": ["compare", "llama3-8b", "--hw", "h100-sxm:64,tpu-v5p:64"],
    "sensitivity": ["sensitivity", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--fixed"],
    "validate": ["validate", "train", "--only", "chip=h200,mi325x"],
    "servers": ["serve", "llama3-70b", "--hw", "h100-sxm,h200,b200"],
    "rl": ["rl", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--prompt", "512", "--generate", "2048"],
    "distill": ["distill", "llama3.1-8b", "--teacher", "llama3.1-70b", "--hw", "h100-sxm", "--chips", "256", "--tokens", "100B"],
    "batch": ["batch"],
    "hostile": ["train"],
    "hostile_chip": ["serve", "llama3-8b", "--chips", "1", "--batch", "1,8"],
}


def made_pages(directory):
    """One page for each question."""
    model = directory / "hostile.yaml"
    model.write_text(HOSTILE_MODEL, encoding="utf-8")
    study = directory / "study.yaml"
    study.write_text("command: train\narguments: [llama3-8b]\nflags: {hw: h100-sxm, top: 1}\n"
                     "axes: {chips: [16, 32, 64], seq: [4096, 8192]}\n", encoding="utf-8")
    pages = {}
    for name, question in QUESTIONS.items():
        words = list(question)
        if name == "batch":
            words.append(str(study))
        if name == "hostile":
            words += [str(model), "--hw", "h100-sxm", "--chips", "16", "--top", "4"]
        if name == "hostile_chip":
            chip = directory / "chip.yaml"
            chip.write_text(HOSTILE_MODEL.replace("llama3-8b", "h100-sxm"), encoding="utf-8")
            words += ["--hw", f"{chip},a100-80g"]
        pages[name] = directory / f"{name}.html"
        result = subprocess.run([BINARY, *words, "-o", f"html={pages[name]}"], capture_output=True, text=True, timeout=120,
                                check=False, cwd=directory)
        assert result.returncode == 0, (name, result.stderr)
        assert "built without charts" not in result.stderr, "the program was built without charts: ./dev charts"
    return pages


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.pages = made_pages(pathlib.Path(cls.directory.name))
        cls.browser = Browser(find_chromium())
        with tarfile.open(AXE) as archive:
            cls.axe = archive.extractfile("package/axe.min.js").read().decode()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.directory.cleanup()

    def show(self, name, **how):
        self.browser.open(self.pages[name], **how)
        drawn = self.browser.until("document.body.dataset.drawn || document.body.dataset.failed")
        self.assertRegex(drawn, r"^\d+$", name)
        return int(drawn)

    def shoot(self, name):
        if SHOTS:
            SHOTS.mkdir(parents=True, exist_ok=True)
            self.browser.screenshot(SHOTS / f"{name}.png")

    def test_every_page_draws_and_is_silent(self):
        for name in QUESTIONS:
            with self.subTest(name):
                drawn = self.show(name)
                # A picture without a mark would be an error that no exception tells of.
                marks = self.browser.js("[...document.querySelectorAll('svg.marks')].map(s => s.querySelectorAll("
                                        "'.mark-rect path, .mark-symbol path, .mark-line path').length)")
                self.assertEqual(len(marks), drawn)
                self.assertTrue(all(marks), marks)
                self.assertEqual(self.browser.complaints(), [])
                self.shoot(name)

    def test_every_page_is_accessible(self):
        for name in ("train", "curve", "serve", "compare", "sensitivity", "validate", "batch"):
            self.show(name)
            self.browser.js(self.axe + ";0")
            for dark in (False, True) if name == "serve" else (False,):
                with self.subTest(name, dark=dark):
                    self.browser.colours(dark)
                    found = self.browser.js(
                        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + "
                        "v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary).join(' | ')))")
                    self.assertEqual(found, [])
                    if dark:
                        self.shoot(f"{name}-dark")

    def test_pages_have_their_pictures(self):
        for name, titles in {
            "train": ["under the chip's roofs", "What each input does to the step", "On fewer and more chips"],
            "serve": ["under the chip's roofs", "Where the decode step goes", "Memory of a chip"],
        }.items():
            self.show(name)
            found = self.browser.js("[...document.querySelectorAll('figure')].map(f => f.textContent).join(' ')")
            for title in titles:
                with self.subTest(name, title=title):
                    self.assertIn(title, found)

    def test_the_answer_is_on_the_screen(self):
        # Of each column its heading and cells: where they end, and where their box does, which scrolls sideways.
        ends = """[...document.querySelectorAll('table:not(.numbers)')].flatMap(table => {
            if (!table.tHead) return [];
            const box = table.closest('.wide').getBoundingClientRect();
            return [...table.tHead.rows[0].cells].map((head, k) => [head.textContent, Math.max(
                ...[...table.rows].map(row => row.cells[k].getBoundingClientRect().right)), box.right]);
        })"""
        for width in (1280, 1920):
            for name, (wanted, _) in ANSWERS.items():
                with self.subTest(name, width=width):
                    self.show(name, width=width)
                    columns = self.browser.js(ends)
                    self.assertLessEqual(set(wanted), {title for title, _, _ in columns})
                    for title, end, box in columns:
                        if title in wanted:
                            self.assertLessEqual(end, min(width, box) + 0.5, title)
                    self.assertLessEqual(self.browser.js("document.documentElement.scrollWidth"), width)

    def test_a_phone_shows_the_answer_first(self):
        seen = """[...document.querySelectorAll('main > p, td')].filter(e => {
            const box = e.getBoundingClientRect();
            return box.width > 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
        }).map(e => (e.dataset.l ? e.dataset.l + ': ' : '') + e.textContent).join('\\n')"""
        beyond = "[...document.querySelectorAll('table.cards td')].filter(e => e.getBoundingClientRect().right > innerWidth)"
        for name, (_, words) in ANSWERS.items():
            with self.subTest(name):
                self.show(name, width=390, height=844)
                self.shoot(f"{name}-phone")
                self.assertLessEqual(self.browser.js("document.documentElement.scrollWidth"), 390)
                self.assertEqual(self.browser.js(f"{beyond}.map(e => e.textContent)"), [])
                text = self.browser.js(seen).replace("\u00a0", " ")  # units stay with their numbers
                for word in words:
                    self.assertRegex(text, word)
                self.assertEqual(self.browser.complaints(), [])

    def test_print_hides_what_is_no_use_on_paper(self):
        self.show("train", media="print", dark=True)
        self.assertEqual(self.browser.js("getComputedStyle(document.querySelector('.filter')).display"), "none")
        self.assertEqual(self.browser.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.shoot("train-print")

    COLUMN = ("[...document.querySelectorAll('table.ranked tbody tr')].filter(r => !r.hidden)"
              ".map(r => Number(r.cells[{0}].dataset.v))")

    def test_tables_sort_and_filter(self):
        self.show("train")
        column = self.browser.js("[...document.querySelectorAll('table.ranked th')].findIndex(h => "
                                 "h.textContent.startsWith('mem'))")
        self.assertGreaterEqual(column, 0)
        values = self.browser.js(self.COLUMN.format(column))
        self.assertGreater(len(set(values)), 2)
        # By keyboard: the heading's button has the focus and Enter presses it.
        press = f"document.querySelectorAll('table.ranked th')[{column}].querySelector('button').focus()"
        for expected, sort in ((sorted(values), "ascending"), (sorted(values, reverse=True), "descending")):
            self.browser.js(press)
            self.browser.key("Enter", windowsVirtualKeyCode=13, text="\r")
            self.assertEqual(self.browser.js(self.COLUMN.format(column)), expected)
            self.assertEqual(self.browser.js(f"document.querySelectorAll('table.ranked th')[{column}].ariaSort"), sort)
        self.browser.js("(() => { const i = document.querySelector('.filter input'); i.value = 'RING pp'; "
                        "i.dispatchEvent(new Event('input')); })()")
        shown = self.browser.js("[...document.querySelectorAll('table.ranked tbody tr')].filter(r => !r.hidden)"
                                ".map(r => r.textContent)")
        self.assertTrue(shown and len(shown) < len(values))
        self.assertTrue(all("ring" in text for text in shown))
        self.assertIn(f"{len(shown)} of {len(values)} rows", self.browser.js("document.querySelector('.filter').textContent"))

    def middle_of(self, selector):
        return self.browser.js(f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: "
                               "'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); "
                               "return [b.x + b.width / 2, b.y + b.height / 2]; })()")

    def test_a_point_says_what_it_is(self):
        self.show("serve")
        x, y = self.middle_of("#chart-0 .mark-symbol path")
        self.browser.mouse("mouseMoved", x, y)
        text = self.browser.until("(document.querySelector('#vg-tooltip-element.visible') || {}).textContent")
        self.assertRegex(text, r"what:?.*tp \d+.*on 8 chips, batch \d+")
        self.assertIn("tokens/s per user", text)

    def test_limits_are_dragged_and_slid(self):
        for name, chart in (("serve", 0), ("curve", 1)):
            with self.subTest(name):
                self.show(name)
                left = f"document.querySelector('#chart-{chart} ~ .limits output').textContent"
                whole = self.browser.js(left)
                match = re.match(r"(\d+) of (\d+) are left", whole)
                self.assertEqual(match[1], match[2], "no limit at first")
                slider = f"document.querySelector('#chart-{chart} ~ .limits input')"
                self.browser.js(f"{slider}.value = 500; {slider}.dispatchEvent(new Event('input'))")
                halved = int(self.browser.js(left).split()[0])
                self.assertTrue(0 < halved < int(match[2]), halved)
                # Pale points are as many as the text says.
                pale = self.browser.js(f"[...document.querySelectorAll('#chart-{chart} .mark-symbol path')]"
                                       ".filter(p => Number(p.getAttribute('opacity')) < 0.5).length")
                self.assertEqual(pale, int(match[2]) - halved)
                # The line follows the mouse.
                rule = f"[...document.querySelectorAll('#chart-{chart} .mark-rule line')].filter(l => " \
                       "l.getAttribute('stroke') === '#c14d4d' && Number(l.getAttribute('x2') || 0) === 0)[0]"
                self.browser.js(f"document.querySelector('#chart-{chart}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
                box = self.browser.js(f"(() => {{ const b = {rule}.getBoundingClientRect(); return [b.x, b.y + b.height / 2]; }})()")
                before = self.browser.js(f"{slider}.value")
                self.browser.mouse("mouseMoved", *box)
                self.browser.mouse("mousePressed", *box, button="left", clickCount=1)
                for step in (20, 60, 100):
                    self.browser.mouse("mouseMoved", box[0] + step, box[1], button="left")
                self.browser.mouse("mouseReleased", box[0] + 100, box[1], button="left", clickCount=1)
                self.assertGreater(float(self.browser.js(f"{slider}.value")), float(before) + 20)
                self.assertEqual(self.browser.complaints(), [])

    def test_a_map_is_coloured_by_another_dimension(self):
        self.show("train")
        fill = "[...document.querySelectorAll('.chart')].at(-1).querySelectorAll('.mark-rect path')"
        colours = f"JSON.stringify([...{fill}].map(p => p.getAttribute('fill')))"
        before = self.browser.js(colours)
        self.browser.js("(() => { const s = [...document.querySelectorAll('.chart select')].at(-1); "
                        "s.selectedIndex = s.options.length - 1; s.dispatchEvent(new Event('change')); })()")
        self.browser.until(f"{colours} !== {before!r}")

    def test_names_from_files_stay_text(self):
        self.browser.open(self.pages["hostile"])
        self.browser.until("document.body.dataset.drawn")
        self.assertEqual(self.browser.js("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.js("typeof boom"), "undefined")
        self.assertIn("onerror=boom()", self.browser.js("document.querySelector('h1').textContent"))
        self.assertEqual(self.browser.complaints(), [])
        # And in a picture's legend and what the mouse is told.
        self.show("hostile_chip")
        self.assertIn("onerror=boom()", self.browser.js("document.querySelector('#chart-0').textContent"))
        points = "[...document.querySelectorAll('#chart-0 .mark-symbol path')].map(p => p.getBoundingClientRect())"
        for x, y in self.browser.js(f"{points}.map(b => [b.x + b.width / 2, b.y + b.height / 2])"):
            self.browser.mouse("mouseMoved", x, y)
            text = self.browser.js("(document.querySelector('#vg-tooltip-element') || {}).textContent || ''")
            if "onerror=boom()" in text:
                break
        self.assertIn("onerror=boom()", text)
        self.assertEqual(self.browser.js("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.js("typeof boom"), "undefined")
        self.assertEqual(self.browser.complaints(), [])

    def test_the_policy_allows_no_request_and_no_code(self):
        self.show("train")
        blocked = self.browser.js("fetch('data:text/plain,x').then(() => 'fetched', () => 'blocked')")
        self.assertEqual(blocked, "blocked")
        self.assertEqual(self.browser.js(
            "new Promise(done => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; "
            "document.body.append(s); done(typeof window.ran); })"), "undefined")

    def test_the_same_question_gives_the_same_bytes(self):
        again = pathlib.Path(self.directory.name) / "again.html"
        subprocess.run([BINARY, *QUESTIONS["serve"], "-o", f"html={again}"], capture_output=True, check=True)
        self.assertEqual(again.read_bytes(), self.pages["serve"].read_bytes())


# What a reader came for: headings of the table, and words that a phone shows before anything is scrolled.
ANSWERS = {
    "train": (["run", "cost", "bound by", "step"], [r"\d d \(", r"\$[\d.]+[kM]", "bound by"]),
    "curve": (["run", "cost", "bound by", "step"], [r"run: [\d.]+ d", r"cost: \$[\d.]+[kM]", "bound by: "]),
    "serve": (["TTFT", "TPOT", "tok/s/chip", "$/M out", "bound by"], ["tokens/s per chip", r"\$[\d.]+ per M", "bound by"]),
    "servers": (["TTFT", "TPOT", "tok/s/chip", "$/M out", "bound by"], ["tokens/s per chip", r"\$[\d.]+ per M", "bound by"]),
    "compare": (["time", "cost", "step"], [r"fastest: .*\d", r"cheapest: .*\$\d"]),
    "sensitivity": (["value", "elasticity"], [r"Step [\d.]+ s, bound by", "helps most"]),
    "validate": (["measured", "predicted", "error", "bound by"], ["Error: mean"]),
    "rl": (["tok/s/chip", "step"], [r"a step takes [\d.]+ \w+"]),
    "distill": (["step", "bound by"], [r"a step takes [\d.]+ s"]),
    "batch": (["run_time_s", "run_cost_usd"], [r"run_time_s: [\d.]+ d", r"run_cost_usd: \$[\d.]+[kM]", "bound_by"]),
}

HOSTILE_MODEL = """\
extends: llama3-8b
name: hostile
title: {0}
""".format("'" + HOSTILE.replace("'", "''") + "'")

if __name__ == "__main__":
    if not find_chromium():
        print("skipped: Chromium is not installed")
        sys.exit(77)
    if AXE is None:
        print("skipped: axe-core is missing: ./dev charts fetches it, and what draws pictures")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
