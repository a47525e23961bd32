r"""The page "What is proved" names every statement of the book, in its order, and leads to it."""

import re

from tests.book.pages import text_of
from tests.book.test_built import BUILT

pytestmark = BUILT
KINDS = ("theorem", "proposition", "lemma", "corollary")


def test_names_every_statement_of_the_book_once_and_leads_to_it(book):
    stated = {
        (page.file, box["id"]): text_of(box.select_one(".admonition-title"))
        for page in book.chapters
        for box in page.body.select(", ".join(f"div.proof.{kind}" for kind in KINDS))
    }
    page = book.page(book.root / "proved.html")
    links = page.body.select("ul.results a")
    listed = {page.resolve(link["href"]): text_of(link) for link in links}
    assert len(stated) > 70
    assert listed == stated
    assert len(links) == len(listed)
    assert [int(re.search(r"\d+", name)[0]) for name in listed.values()] == list(range(1, len(listed) + 1))
