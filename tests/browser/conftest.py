r"""One browser for a session. CHROMIUM names it; POSBOOK_REQUIRE_BROWSER=1 makes its absence a failure."""

import os

import pytest

from tests.book.pages import is_built
from tests.browser import views


@pytest.fixture(scope="session")
def browser():
    if views.chromium() is None:
        if os.environ.get("POSBOOK_REQUIRE_BROWSER") == "1":
            pytest.fail(views.HOW_TO_GET_ONE, pytrace=False)
        pytest.skip(views.HOW_TO_GET_ONE)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = views.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def contexts(browser):
    kept = views.Contexts(browser)
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def built():
    if not is_built():
        pytest.fail("build the book first: make book", pytrace=False)


@pytest.fixture(scope="module")
def mathematics(browser, request):
    """A page with the functions of the module's SCRIPTS, and without the figure that they move."""
    page = browser.new_page()
    page.set_content("<!doctype html><title>Functions</title>")
    for script in request.module.SCRIPTS:
        page.add_script_tag(content=script.read_text(encoding="utf-8"))
    yield page
    page.close()
