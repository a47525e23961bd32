r"""Look at pages of the built book in all four views.

    python -m tests.browser.look OUT                        every page
    python -m tests.browser.look OUT why/symmetry.html …    these pages

saves OUT/why-symmetry-1280-light.png and so on: 1280 and 390 px wide, light and dark, from top to bottom.
POSBOOK_HTML says where the book lies, if not in build/html; CHROMIUM names the browser.
"""

import sys
from pathlib import Path

from tests.book.pages import is_built, location, page_paths
from tests.browser import views


def main(out, *paths):
    if not is_built():
        sys.exit("build the book first: make book")
    if views.chromium() is None:
        sys.exit(views.HOW_TO_GET_ONE)
    from playwright.sync_api import sync_playwright

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        contexts = views.Contexts(views.launch(playwright))
        for path in paths or page_paths(location()):
            for view in views.VIEWS:
                picture = folder / f"{path.removesuffix('.html').replace('/', '-')}-{view}.png"
                with contexts.open((location() / path).as_uri(), view) as page:
                    page.screenshot(path=picture, full_page=True)
                print(picture)
        contexts.browser.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
