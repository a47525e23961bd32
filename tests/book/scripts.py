r"""Gallery scripts run as a reader runs them: alone, in an empty folder, without a screen.

Each runs once in a test session, also where several workers share the session: what it did is kept in one
folder, and a lock says who runs it.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

LINE = re.compile(r"^(\w+) = (.*\S)\s*$", re.MULTILINE)
SUPERSCRIPT = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
SHOWN = re.compile(r"([-+]?\d+(?:\.\d+)?)(?:(?:×10\^?|e)([-+]?\d+))?(%?)")
# What every script pays before its first line, and what is therefore not the script's own.
BARE = "import matplotlib.pyplot, torch, posbook\n"


@dataclass
class Report:
    status: int
    printed: str
    errors: str
    drawn: list[str]
    seconds: float

    @property
    def numbers(self):
        return dict(LINE.findall(self.printed))


def run(script, folder, timeout=120):
    """Run `script` alone in `folder`, which is empty."""
    folder.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if key != "POSBOOK_GALLERY"}
    environment["MPLBACKEND"] = "Agg"
    start = time.perf_counter()
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, str(script)], cwd=folder, env=environment, stdout=out, stderr=err
        )
        pid, status, used = 0, 0, None
        while not pid:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if not pid and time.perf_counter() - start > timeout:
                process.kill()
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
    # On a busy machine the clock runs on while a script waits; its processor time does not.
    seconds = min(time.perf_counter() - start, used.ru_utime + used.ru_stime)
    printed, errors = (folder / "stdout").read_text(), (folder / "stderr").read_text()
    return Report(process.returncode, printed, errors, sorted(p.name for p in folder.glob("*.svg")), seconds)


class Runner:
    """Runs scripts at most once for all that share `folder`."""

    def __init__(self, folder, lanes):
        self.folder, self.lanes = Path(folder), lanes
        self.folder.mkdir(parents=True, exist_ok=True)

    def report(self, script, wait=True):
        """What `script` did; None, with `wait=False`, while somebody else runs it."""
        script = Path(script)
        kept = self.folder / f"{script.parent.name}-{script.stem}.json"
        with kept.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                return None
            if not kept.exists():
                kept.write_text(json.dumps(asdict(run(script, kept.with_suffix("")))))
            return Report(**json.loads(kept.read_text()))

    def reports(self, scripts):
        """What each script did, those first that nobody runs at the moment."""
        with ThreadPoolExecutor(self.lanes) as pool:
            list(pool.map(lambda script: self.report(script, wait=False), scripts))
        return {script: self.report(script) for script in scripts}

    def start(self):
        """The seconds that a script pays for its imports alone."""
        bare = self.folder / "bare.py"
        if not bare.exists():
            bare.write_text(BARE)
        return self.report(bare).seconds


def run_faults(script, report):
    """A script runs to its end in silence, and leaves the picture that it is named for."""
    faults = []
    if report.status:
        faults.append(f"{script.name}: ended with {report.status}")
    if report.errors:
        faults.append(f"{script.name}: wrote to stderr: {report.errors.strip()[-2000:]}")
    if f"{script.stem}.svg" not in report.drawn:
        faults.append(f"{script.name}: saved {report.drawn or 'nothing'}, not {script.stem}.svg")
    return faults


def slow_faults(seconds, limit):
    total = sum(seconds.values())
    if total <= limit:
        return []
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:5]
    named = ", ".join(f"{name} {seconds[name]:.1f} s" for name in slowest)
    return [f"all scripts: {total:.0f} s beyond their imports, of at most {limit} s; the slowest: {named}"]


def written(text):
    """What −3.48, 10 000, 29 % or 4.4 × 10⁻¹⁶ says, exactly, and the unit of its last digit."""
    plain = re.sub(r"[\s,]", "", text.replace("−", "-").translate(SUPERSCRIPT))
    match = SHOWN.fullmatch(plain)
    if match is None:
        raise ValueError(f"{text!r} is no number")
    digits = Decimal(match[1])
    power = int(match[2] or 0) - (2 if match[3] else 0)
    return digits.scaleb(power), Decimal(1).scaleb(digits.as_tuple().exponent + power)


def disagreement(shown, printed, bound=None):
    """Why `shown` is not what a script `printed`, or None; a rounding error only has to keep its `bound`."""
    try:
        value = Decimal(printed)
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        return None if shown == printed.strip("'\"") else f"shows {shown}, the script printed {printed}"
    try:
        number, unit = written(shown)
    except ValueError as error:
        return str(error)
    if bound:
        side, limit = bound[0], Decimal(bound[1:])
        outside = [n for n in (number, value) if not (n < limit if side == "<" else n > limit)]
        return f"{outside[0]} is not {bound}" if outside else None
    # Half a unit, and a little: a value on the edge between two roundings agrees with both.
    if abs(value - number) > unit / 2 * Decimal("1.000000001"):
        return f"shows {shown}, the script printed {printed}"
    return None


def number_faults(pages, scripts, report):
    """Every number that names a script is what the script prints when it is run again."""
    by_name = {script.stem: script for script in scripts}
    faults = []
    for page in pages:
        for span in page.soup.select("span.number"):
            name, key, shown = span.get("data-script"), span.get("data-name"), span.get_text(strip=True)
            if name is None and key is None:
                continue  # its source is a doctest of the page, which the prose tests run
            if name not in by_name:
                faults.append(f"{page}: {shown} comes from {name}.py, and there is no such script")
                continue
            printed = report(by_name[name]).numbers
            if key not in printed:
                faults.append(f"{page}: {shown} is {key} of {name}.py, which prints no such number")
            elif problem := disagreement(shown, printed[key], span.get("data-bound")):
                faults.append(f"{page}: {key} of {name}.py: {problem}")
    return faults
