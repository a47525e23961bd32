r"""What a finding says is explained: its section stands in the porting page, under that very name."""

from urllib.parse import urlsplit

import pytest

from posbook.practice.findings import SECTIONS, Finding

BUILT = [pytest.mark.book, pytest.mark.xdist_group("built")]
# Of a function, of its cache and its batch, and of what is added; named here, since readers link to them.
OTHERS = [
    "layout",
    "direction",
    "frequencies",
    "factor",
    "partial-rotation",
    "offset",
    "precision",
    "relativity",
    "positions",
    "path-dependence",
    "batch",
    "casting",
    "added-tables",
    "biases",
]


class TestThePortingPage:
    pytestmark = BUILT

    @pytest.fixture
    def page(self, book):
        address = urlsplit(Finding(next(iter(SECTIONS)), "note", "").section)
        found = book.page(book.root / address.path)
        assert found is not None, f"there is no page {address.path}"
        return found

    @pytest.mark.parametrize("code", SECTIONS)
    def test_explains_every_code_that_a_finding_can_have(self, page, code):
        address = urlsplit(Finding(code, "note", "").section)
        section = page.body.select_one(f"section#{address.fragment}")
        assert address.path == page.path
        assert section is not None, f"{code}: no section #{address.fragment}"
        codes = [tag.get_text() for tag in section.find_all("code")]
        assert code in codes, f"#{address.fragment} does not name {code}"

    @pytest.mark.parametrize("anchor", OTHERS)
    def test_has_every_section_that_is_linked_to(self, page, anchor):
        assert page.body.select_one(f"section#{anchor}") is not None, f"no section #{anchor}"
