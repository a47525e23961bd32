r"""The built book, parsed once for all tests. POSBOOK_HTML says where it lies, if not in build/html."""

import pytest

from tests.book import pages


@pytest.fixture(scope="session")
def book():
    if not pages.is_built():
        pytest.fail("build the book first: make book", pytrace=False)
    return pages.Book(pages.location())
