r"""Gallery scripts work alone, and the numbers in the built book are what they print."""

import os

import pytest

from tests.book import pages
from tests.book.scripts import Runner, disagreement, number_faults, run, run_faults, slow_faults, written
from tests.book.test_built import none, planted

EXAMPLES = pages.ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("plot_*.py"))
SECONDS_FOR_ALL = 90


@pytest.fixture(scope="session")
def runner(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # A worker's own folder lies in the one that all workers share.
    shared = base if workers == 1 and "PYTEST_XDIST_WORKER" not in os.environ else base.parent
    return Runner(shared / "scripts", lanes=2 if workers == 1 else 1)


# First, because it runs all of them, two at a time; the others ask for what is then known.
@pytest.mark.book
def test_all_scripts_together_are_quick(runner):
    assert SCRIPTS, f"{EXAMPLES} has no plot_*.py"
    start = runner.start()
    reports = runner.reports(SCRIPTS)
    none(slow_faults({s.name: max(0.0, reports[s].seconds - start) for s in SCRIPTS}, limit=SECONDS_FOR_ALL))


@pytest.mark.book
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_a_script_runs_alone_and_in_silence_and_saves_its_figure(script, runner):
    none(run_faults(script, runner.report(script)))


@pytest.mark.book
def test_every_number_in_the_book_is_what_its_script_prints(book, runner):
    reports = runner.reports(SCRIPTS)
    none(number_faults(book.pages, SCRIPTS, reports.get))


# The checks themselves.


@pytest.mark.parametrize(
    "shown, printed",
    [
        ("120", "120"),
        ("120", "119.6"),
        ("0.6847", "0.68474999"),
        ("0.7", "0.65"),
        ("0.6", "0.65"),
        ("−3.4832", "-3.48321"),
        ("10 000", "10000"),
        ("10\u202f000", "10000.2"),
        ("1,024", "1024"),
        ("29 %", "0.2941"),
        ("4.4 × 10⁻¹⁶", "4.44e-16"),
        ("4.4 × 10−16", "4.44e-16"),
        ("6e3", "5980"),
        ("halves", "halves"),
        ("halves", "'halves'"),
    ],
)
def test_a_number_agrees_with_what_rounds_to_it(shown, printed):
    assert disagreement(shown, printed) is None


@pytest.mark.parametrize(
    "shown, printed",
    [
        ("120", "121"),
        ("120", "120.51"),
        ("0.6847", "0.68477"),
        ("−3.4832", "3.4832"),
        ("29 %", "0.2961"),
        ("4.4 × 10⁻¹⁶", "4.46e-16"),
        ("4.4 × 10⁻¹⁶", "4.4e-15"),
        ("halves", "interleaved"),
        ("about 3", "3"),
        ("3", "nan"),
    ],
)
def test_a_number_disagrees_with_anything_else(shown, printed):
    assert disagreement(shown, printed)


def test_a_rounding_error_only_keeps_its_bound():
    assert disagreement("4.4 × 10⁻¹⁶", "8.9e-16", "<1e-12") is None
    assert disagreement("0.98", "0.97", ">0.9") is None
    assert "is not <1e-12" in disagreement("4.4 × 10⁻¹⁶", "2e-12", "<1e-12")
    assert "is not <1e-12" in disagreement("4.4 × 10⁻¹¹", "4.4e-16", "<1e-12")
    assert "is not >0.9" in disagreement("0.98", "0.9", ">0.9")


def test_a_written_number_is_exact():
    assert [str(part) for part in written("4.40 × 10⁻¹⁶")] == ["4.40E-16", "1E-18"]


NUMBER = "<span class='number'"
SMALL = "<span class='number' data-script='plot_x' data-name='small' data-bound='<1e-12'"


@pytest.mark.parametrize(
    "span, said",
    [
        (f"{NUMBER} data-script='plot_x' data-name='worst'>120</span>", None),
        (f"{NUMBER}>0.5</span>", None),
        (
            f"{SMALL}>3 × 10<sup>−16</sup></span>",
            None,
        ),
        (
            '<span class="number" data-script="plot_x" data-name="worst">121</span>',
            "worst of plot_x.py: shows 121",
        ),
        (
            '<span class="number" data-script="plot_x" data-name="best">1</span>',
            "best of plot_x.py, which prints no",
        ),
        (
            '<span class="number" data-script="plot_y" data-name="worst">1</span>',
            "plot_y.py, and there is no",
        ),
        ('<span class="number" data-name="worst">1</span>', "there is no such script"),
    ],
)
def test_a_number_is_compared_with_a_run_of_its_script(span, said, tmp_path):
    script = tmp_path / "examples" / "plot_x.py"
    script.parent.mkdir()
    script.write_text("print('worst = 120')\nprint('small = 4.4e-16')\nprint('plot_x.svg')")
    book = planted(tmp_path / "html", "why/x.html", "<h1>X", f"<h1>X</h1>{span}<h1>")
    faults = number_faults(book.pages, [script], Runner(tmp_path / "runs", lanes=1).report)
    assert (faults == []) if said is None else (len(faults) == 1 and said in faults[0])


@pytest.mark.parametrize(
    "code, said",
    [
        ("import os; assert 'POSBOOK_GALLERY' not in os.environ; open('plot_x.svg', 'w')", None),
        ("open('plot_x.svg', 'w'); 1 / 0", "ended with 1"),
        ("open('plot_x.svg', 'w'); import warnings; warnings.warn('old')", "wrote to stderr"),
        ("open('other.svg', 'w')", "not plot_x.svg"),
        ("open('plot_x.svg', 'w'); import time; time.sleep(60)", "ended with -9"),
    ],
)
def test_a_script_that_fails_or_warns_or_draws_nothing_is_caught(code, said, tmp_path, monkeypatch):
    monkeypatch.setenv("POSBOOK_GALLERY", "1")
    script = tmp_path / "plot_x.py"
    script.write_text(code)
    faults = run_faults(script, run(script, tmp_path / "run", timeout=2))
    assert (faults == []) if said is None else any(said in fault for fault in faults)


def test_a_script_runs_once_for_all_that_ask(tmp_path):
    script = tmp_path / "plot_x.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')")
    for _ in range(2):
        Runner(tmp_path / "runs", lanes=2).reports([script])
    assert (tmp_path / "ran").read_text() == "x"


def test_slow_scripts_are_named():
    assert slow_faults({"plot_a.py": 50, "plot_b.py": 40}, limit=90) == []
    (fault,) = slow_faults({"plot_a.py": 51, "plot_b.py": 40}, limit=90)
    assert "91 s" in fault
    assert "plot_a.py 51.0 s" in fault
