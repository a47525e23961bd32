"""What make merit and make links rest on: a host of one's own, honest medians, true counts."""

import gzip
import importlib.util
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.book.pages import ROOT, Book
from tests.merit import links, measure
from tests.merit.serve import contents, serving

TEXT = "<!doctype html><title>x</title>" + "positions " * 200


@pytest.fixture
def html(tmp_path):
    contents.cache_clear()
    (tmp_path / "index.html").write_text(TEXT)
    (tmp_path / "font.woff2").write_bytes(b"\0" * 100)
    return tmp_path


def fetch(url, **headers):
    # No proxy: the address is this machine's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return answer.headers, answer.read()


def test_text_is_sent_compressed_to_who_takes_it_and_a_font_as_it_is(html):
    with serving(html) as address:
        headers, packed = fetch(f"{address}/index.html?v=1", **{"Accept-Encoding": "gzip, br"})
        assert headers["Content-Encoding"] == "gzip"
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert gzip.decompress(packed).decode() == TEXT
        assert fetch(f"{address}/")[1].decode() == TEXT
        headers, font = fetch(f"{address}/font.woff2", **{"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] is None
        assert len(font) == 100


def test_what_is_not_in_the_book_is_not_found(html):
    with serving(html / ".") as address, pytest.raises(urllib.error.HTTPError, match="404") as refused:
        fetch(f"{address}/../secret")
    refused.value.close()


def test_the_size_is_that_of_the_files_and_of_what_is_sent(html):
    (html / "long.txt").write_text("0" * 2**20)
    found = measure.size(html)
    assert found["files"] == 3
    assert found["mib"] == 1.0
    assert found["sent_mib"] == 0.0


def report(performance, seo=1.0, sent=2048):
    scores = {"performance": performance, "accessibility": 1.0, "best-practices": 1.0, "seo": seo}
    return {
        "categories": {name: {"score": score, "auditRefs": []} for name, score in scores.items()},
        "audits": {"total-byte-weight": {"numericValue": sent}},
    }


@pytest.mark.parametrize("visits, middle", [([0.9, 1.0, 0.97], 97), ([1.0, 0.5], 50)])
def test_the_median_of_the_visits_is_kept_never_the_best(visits, middle):
    assert measure.summary(list(map(report, visits)))["performance"] == middle


def test_a_desktop_score_below_the_mark_is_a_fault_and_a_mobile_one_is_not():
    low, high = measure.summary([report(0.97)]), measure.summary([report(0.98)])
    pages = {"a": {"desktop": low, "mobile": high}, "b": {"desktop": high, "mobile": low}}
    assert measure.faults({"lighthouse": {"pages": pages}}) == ["a: performance is 97, below 98"]


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with everything, on which Lighthouse says what the test says."""
    monkeypatch.setattr(measure, "RESULT", tmp_path / "colophon.json")
    monkeypatch.setattr(measure, "is_built", lambda: True)
    monkeypatch.setattr(measure, "location", lambda: tmp_path)
    monkeypatch.setattr(measure.views, "chromium", lambda: "/bin/true")
    monkeypatch.setattr(measure, "node_version", lambda: "20.0.0")
    monkeypatch.setattr(measure, "lighthouse", lambda: ["lighthouse"])
    visits = []

    def visit(program, url, screen):
        visits.append((url.rpartition("127.0.0.1:")[2].partition("/")[2], screen))
        return {**report(0.99), "environment": {"hostUserAgent": "X HeadlessChrome/156.0.0.0 Y"}}

    monkeypatch.setattr(measure, "visit", visit)
    return visits


def test_every_page_is_visited_on_both_screens_in_every_round(machine, capsys):
    assert measure.main(["--rounds", "2"]) == 0
    wanted = [(f"{page}.html", screen) for page in measure.PAGES for screen in measure.SCREENS]
    assert machine == wanted * 2
    assert json.loads(measure.RESULT.read_text())["lighthouse"]["chromium"] == "156"


def test_the_times_of_builds_stay_with_their_date_until_they_are_measured_again(machine, monkeypatch, capsys):
    old = {"date": "2020-01-01", "cold_s": 1.0}
    measure.RESULT.write_text(json.dumps({"date": "2020-01-01", "builds": old, "stale": 1}))
    measure.main(["--rounds", "1"])
    record = json.loads(measure.RESULT.read_text())
    assert record["builds"] == old
    assert "stale" not in record
    monkeypatch.setattr(measure, "builds", lambda: {"cold_s": 2.0})
    measure.main(["--rounds", "1", "--builds"])
    assert json.loads(measure.RESULT.read_text())["builds"]["cold_s"] == 2.0


def test_where_lighthouse_cannot_say_nothing_is_written(machine, monkeypatch, capsys):
    monkeypatch.setattr(measure, "visit", lambda *_: None)
    with pytest.raises(SystemExit, match="nothing was written"):
        measure.main(["--rounds", "1"])
    assert not measure.RESULT.exists()


def test_without_node_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(measure.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="apt install nodejs npm"):
        measure.node_version()


def test_the_builds_are_timed_in_a_copy_whose_page_is_edited_once(monkeypatch, tmp_path):
    page = tmp_path / measure.EDITED
    page.parent.mkdir(parents=True)
    page.write_text("Prose.\n")
    (tmp_path / "build").mkdir()
    seen = []

    def build(copy):
        seen.append(((copy / measure.EDITED).read_text().count("\n"), (copy / "build").exists()))
        return float(len(seen))

    monkeypatch.setattr(measure, "build", build)
    found = measure.builds(tmp_path)
    assert (found["cold_s"], found["unchanged_s"], found["one_page_s"]) == (1.0, 2.0, 3.0)
    assert seen == [(1, False), (1, False), (3, False)]
    assert page.read_text() == "Prose.\n"


# --- links --------------------------------------------------------------------------------------------------


def test_an_address_is_listed_once_with_every_page_that_names_it(tmp_path):
    link = '<a href="https://x.example/a#b">x</a>'
    (tmp_path / "one.html").write_text(
        f'<body>{link * 2}<a href="two.html">2</a><img src="https://no.example">'
    )
    (tmp_path / "two.html").write_text(f'<body>{link}<a href="mailto:a@b.example">m</a>')
    assert links.external(Book(tmp_path)) == {"https://x.example/a": ["one.html", "two.html"]}


def test_what_is_missing_is_gone_and_what_is_there_is_fine(html, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(html) as address:
        assert links.ask(f"{address}/index.html") == ("fine", "200")
        assert links.ask(f"{address}/away.html") == ("gone", "404")
    verdict, _ = links.ask(address)  # nobody listens there any more
    assert verdict == "unclear"


def test_without_a_network_no_address_is_called_gone(tmp_path, monkeypatch, capsys):
    (tmp_path / "index.html").write_text('<body><a href="https://x.example/">x</a>')
    monkeypatch.setattr(links, "location", lambda: tmp_path)
    monkeypatch.setattr(links, "is_built", lambda: True)
    for answer in (("gone", "Name or service not known"), ("unclear", "timed out")):
        monkeypatch.setattr(links, "ask", lambda _, answer=answer: answer)
        with pytest.raises(SystemExit, match="no network here; 1 addresses"):
            links.main([])
    monkeypatch.setattr(links, "ask", lambda _: ("gone", "404"))
    assert links.main([]) == 1
    assert "gone     https://x.example/  (404)" in capsys.readouterr().out


# --- the page -----------------------------------------------------------------------------------------------


@pytest.fixture
def merit(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    spec = importlib.util.spec_from_file_location("merit_page", ROOT / "docs" / "_ext" / "merit.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "merit_page", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("what", ["scores", "size", "builds"])
def test_what_was_not_measured_is_said_to_be_so(merit, what):
    (said,) = merit.SHOWN[what]({"lighthouse": None, "size": None, "builds": None})
    assert said.astext().endswith("not measured.")


def test_the_page_shows_the_record_that_was_measured(merit, machine, capsys):
    measure.main(["--rounds", "1"])
    record = json.loads(measure.RESULT.read_text())
    shown = merit.scores(record)[0].astext()
    assert shown.count("99 / 99") == shown.count("2 KiB") == len(measure.PAGES)
    assert merit.CATEGORIES.keys() == set(measure.CATEGORIES)


def test_an_example_is_counted_once_however_many_lines_it_has(merit):
    page = "```python\n>>> def f():\n...     return 1\n>>> f()\n1\n```\n\n>>> no\n\n```console\n>>> no\n```\n"
    assert merit.examples(page) == 2
    assert merit.examples(Path(ROOT, "docs", "index.md").read_text(encoding="utf-8")) > 5
