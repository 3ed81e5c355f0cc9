"""docs/case-studies.md against the program: its tables and commands are generated from tests/data/published_runs.yaml
and the answers of the program. And the layouts that were really run must be in the search space: legal, within memory,
answered as they were pinned, and not better than what the search finds by itself; how close the times come is for the
document to say. Usage: case_studies.py ROOT BINARY [--update]"""
import pathlib
import re
import shlex
import sys

import published_runs as runs

# Our own best layouts, one for each set of degrees, among which the layout as run is placed.
RANKED = 10
# A column may hold several causes of a step's `time_s`.
CAUSES = [("compute", ["compute"]), ("memory-bound", ["hbm"]), ("tensor", ["tp_exposed"]),
          ("context", ["cp_exposed"]), ("experts", ["ep_exposed"]), ("data", ["fsdp_exposed", "dp_exposed"]),
          ("pipeline", ["pp_exposed", "bubble"]), ("rest", ["optimizer", "overhead"])]


def three_digits(value):
    text = f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
    digits = len(text.replace(".", "").lstrip("0"))
    return text if digits >= 3 or value >= 999.5 else text + ("" if "." in text else ".") + "0" * (3 - digits)


def seconds(value):
    return three_digits(value) + " s"


def percent(value, sign=""):
    return f"{100 * value:{sign}.0f}%".replace("+0%", "0%").replace("-0%", "0%")


def layout_text(layout):
    """As the program's own tables write it."""
    parts = [f"{key} {layout[key]}" + ("+sp" if key == "tp" and layout["sp"] else "")
             for key in ("dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp") if layout[key] > 1]
    recipe = [f"mb {layout['micro_batch_seqs']} x {layout['grad_accum']}", f"remat {layout['remat']}",
              f"zero {layout['zero']}"]
    if layout["schedule"] != "none":
        recipe.append(layout["schedule"])
    return f"{', '.join(parts) or 'unsharded'}; {', '.join(recipe)}"


def published_step(run, plan):
    """Printed or derived by the data file, or from TFLOP/s under a convention of the document."""
    published = run["published"]
    if "step_time_s" in published:
        return published["step_time_s"]
    ours = next(c for c in plan["mfu_conventions"] if c["name"] == published["convention"])
    return plan["step_time_s"] * ours["tflops_per_chip"] / published["tflops_per_chip"]


def answered(binary, words, top):
    status, document = runs.answer(binary, words, top)
    if status != 0:
        sys.exit(f"scalecalc {shlex.join(words)}: exit {status}")
    for plan in document["plans"]:
        plan["asked_batch_seqs"] = document["query"]["batch_seqs"]
    return document["plans"]


def outside_the_space(run, plan, best):
    """What is wrong with `plan`, the answer to the run as it was pinned, beside `best`, the search's own."""
    if runs.pinned(run, plan["layout"]) != run["fix"]:
        yield f"pinned {run['fix']}, answered {runs.pinned(run, plan['layout'])}"
    if (plan["chips"], plan["idle_chips"]) != (run["chips"], 0):
        yield f"ran on {run['chips']} chips, answered on {plan['chips']} with {plan['idle_chips']} idle"
    if plan["batch_seqs"] != plan["asked_batch_seqs"]:
        yield f"asked for {plan['asked_batch_seqs']} sequences a batch, answered {plan['batch_seqs']}"
    if plan["memory_bytes"]["total"] > plan["memory_bytes"]["capacity"]:
        yield "does not fit"
    if best["step_time_s"] > plan["step_time_s"]:
        yield f"a step of {plan['step_time_s']} s, and the search finds no better than {best['step_time_s']} s"


def lines_of(group, plans, binary):
    """(title, plan, published step) of each run and, behind it, of its what-if."""
    for run, plan in zip(group, plans):
        there = published_step(run, plan)
        yield run["title"], plan, there
        if "what_if" in run:
            yield f"... {run['what_if']['title']}", answered(binary, runs.what_if(run), 1)[0], there


def as_run_tables(group, plans, binary):
    rows = ["| run | layout as answered | memory | published | ours | low to high | ours over published |",
            "|---|---|--:|--:|--:|--:|--:|"]
    lines = list(lines_of(group, plans, binary))
    for title, plan, there in lines:
        here = plan["step_time_s"]
        memory = plan["memory_bytes"]["total"] / plan["memory_bytes"]["capacity"]
        band = f"{seconds(plan['step_time_low_s'])} to {seconds(plan['step_time_high_s'])}"
        rows.append(f"| {title} | {layout_text(plan['layout'])} | {percent(memory)} | {seconds(there)} | "
                    f"{seconds(here)} | {band} | {percent(here / there - 1, '+')} |")
    shown = [cause for cause in CAUSES if any(sum(p["time_s"][k] for k in cause[1]) > 0 for p in plans)]
    rows += ["", "Where our step goes, in shares of it:", "",
             "| run | " + " | ".join(name for name, _ in shown) + " |", "|---|" + "--:|" * len(shown)]
    for title, plan, _ in lines:
        shares = [percent(sum(plan["time_s"][k] for k in keys) / plan["step_time_s"]) for _, keys in shown]
        rows.append(f"| {title} | " + " | ".join(shares) + " |")
    return rows


def ranking_table(group, plans, best):
    rows = ["The same question with nothing pinned:", "",
            "| run | best layout | memory | step | gains | place of the layout as run |", "|---|---|--:|--:|--:|--:|"]
    for run, plan, ranked in zip(group, plans, best):
        first = ranked[0]
        faster = sum(other["step_time_s"] < plan["step_time_s"] for other in ranked)
        place = f"{faster + 1}" if faster < len(ranked) else f"beyond {len(ranked)}"
        chips = "" if first["chips"] == run["chips"] else f"{first['chips']:,} chips: "
        memory = first["memory_bytes"]["total"] / first["memory_bytes"]["capacity"]
        rows.append(f"| {run['title']} | {chips}{layout_text(first['layout'])} | {percent(memory)} | "
                    f"{seconds(first['step_time_s'])} | {percent(1 - first['step_time_s'] / plan['step_time_s'])} | "
                    f"{place} |")
    return rows


def section(group, plans, best, binary):
    rows = ["```sh", *(f"scalecalc {shlex.join(runs.as_run(run))}" for run in group), "```", ""]
    rows += as_run_tables(group, plans, binary) + [""] + ranking_table(group, plans, best)
    departures = [f"- {run['title']}: {run['departs']}." for run in group if "departs" in run]
    if departures:
        rows += ["", "What of these runs cannot be asked:", "", *departures]
    return rows


def main():
    root, binary = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    path = root / "docs/case-studies.md"
    text = wanted = path.read_text(encoding="utf-8")
    all_runs = runs.load(root)
    names = [run["id"] for run in all_runs]
    problems = [f"two runs are called {name}" for name in set(names) if names.count(name) > 1]
    for name in dict.fromkeys(run["group"] for run in all_runs):
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        if not place.search(text):
            sys.exit(f"docs/case-studies.md has no place for {name}")
        group = [run for run in all_runs if run["group"] == name]
        plans = [answered(binary, runs.as_run(run), 1)[0] for run in group]
        best = [answered(binary, runs.question(run), RANKED) for run in group]
        problems += [f"{run['id']}: {problem}" for run, plan, ranked in zip(group, plans, best)
                     for problem in outside_the_space(run, plan, ranked[0])]
        rows = section(group, plans, best, binary)
        wanted = place.sub(lambda m, rows=rows: m.group(1) + "\n".join(rows) + "\n" + m.group(2), wanted)
    if "--update" in sys.argv[3:]:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        problems.append("docs/case-studies.md is not what tests/lint/case_studies.py --update would write")
    print("\n".join(problems) or f"{len(all_runs)} published runs are in the space and stand beside their estimates")
    return 1 if problems else 0


sys.exit(main())
