"""One question at a time, driven as a reader drives it; and the cheat sheet, which is one sheet."""

import re

import pytest

from tests.book.pages import location
from tests.book.test_built import none
from tests.browser import views
from tests.browser.views import View

pytestmark = [pytest.mark.browser, pytest.mark.book, pytest.mark.usefixtures("built", "browser")]
both_widths = pytest.mark.parametrize("view", [View(1280, "light"), View(360, "dark")], ids=str)
PAGE = "practice/rapid-fire.html"
COUNT = 8


def url(path=PAGE, fragment=""):
    return (location() / path).as_uri() + fragment


def seen(page):
    return [box.get_attribute("id") for box in page.locator(".question").all() if box.is_visible()]


def button(page, name):
    return page.locator("show-another").get_by_role("button", name=name, exact=True)


@both_widths
def test_by_keyboard_alone_every_question_comes_once_before_any_comes_again(contexts, view):
    with contexts.open(url(), view) as page:
        assert len(seen(page)) == COUNT
        button(page, "Show me another").focus()
        rounds = []
        for _ in range(2 * COUNT):
            page.keyboard.press("Enter")
            (now,) = seen(page)
            rounds.append(now)
        assert len(set(rounds[:COUNT])) == len(set(rounds[COUNT:])) == COUNT
        assert rounds[COUNT] != rounds[COUNT - 1]
        assert page.evaluate("document.activeElement.textContent") == "Show me another"


def test_the_answer_opens_from_the_control_and_is_closed_again_for_the_next(contexts):
    with contexts.open(url(), views.DESK) as page:
        assert button(page, "Answer").get_attribute("aria-disabled") == "true"
        button(page, "Answer").click(force=True)  # nothing is chosen yet
        assert not page.locator("details.solution[open]").count()
        button(page, "Show me another").press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        (fold,) = [each for each in page.locator("details.solution").all() if each.is_visible()]
        assert fold.evaluate("el => el.open")
        assert page.evaluate("document.activeElement.textContent") == "Hide the answer"
        button(page, "Show me another").click()
        assert not page.locator("details.solution[open]").count()


def test_all_questions_come_back_and_an_address_finds_a_question_that_was_away(contexts):
    with contexts.open(url(), views.DESK) as page:
        button(page, "Show me another").click()
        button(page, "All questions").click()
        assert len(seen(page)) == COUNT
        button(page, "Show me another").click()
        away = "q-rapid-shift" if seen(page) != ["q-rapid-shift"] else "q-rapid-cache"
        page.evaluate(f"location.hash = '{away}'")
        page.wait_for_function(f"document.getElementById('{away}').offsetParent !== null")
        assert len(seen(page)) == COUNT


@both_widths
def test_who_hears_the_page_is_told_the_question_and_nothing_bars_the_way(contexts, view):
    with contexts.open(url(), view) as page:
        button(page, "Show me another").click()
        (now,) = seen(page)
        said = page.locator("show-another .said")
        assert said.get_attribute("role") == "status"
        assert said.text_content().startswith(f"{COUNT - 1} of {COUNT} still to come.")
        asked = page.locator(f"#{now} p:not(.admonition-title)").text_content()
        assert asked.split()[0] in said.text_content()
        for each in page.locator("show-another button").all():
            assert each.bounding_box()["height"] >= 44
        none(views.axe_faults(page))
        none(views.sideways_faults(page))


def test_without_a_script_and_on_paper_all_questions_are_there(browser, contexts):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(url())
    assert len(seen(page)) == COUNT
    assert not page.locator("show-another button").count()
    context.close()
    with contexts.open(url(), views.DESK) as page:
        button(page, "Show me another").click()
        page.emulate_media(media="print")
        assert len(seen(page)) == COUNT
        assert not page.locator("show-another").is_visible()
        page.emulate_media(media="null")  # the context is kept for other tests


def test_a_shuffle_holds_every_number_once_and_does_not_begin_with_the_last_one(contexts):
    with contexts.open(url(), views.DESK) as page:
        orders = page.evaluate(
            "Array.from({length: 2000}, () => customElements.get('show-another').shuffled(4, 2))"
        )
    assert all(sorted(order) == [0, 1, 2, 3] and order[0] != 2 for order in orders)
    assert len({tuple(order) for order in orders}) == 18  # 4! less the six that begin with 2


def test_the_cheat_sheet_prints_on_one_page(contexts):
    with contexts.open(url("cheat-sheet.html"), views.DESK) as page:
        sheet = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "1cm"))
    assert len(re.findall(rb"/Type\s*/Page\b", sheet)) == 1
