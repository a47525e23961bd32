r"""The built book as pages: parsed once, links resolved as a browser that opens the folder does it."""

import os
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
NO_PAGES = {"_static", "_sources", "_images", "_downloads"}
NO_CHAPTERS = {"gallery", "reference", "_modules"}
SRCSET_ITEM = re.compile(r"([^\s,]\S*[^\s,])(?:\s+[\d.]+[wx])?\s*(?:,|$)")


def location():
    """Where the built book lies: POSBOOK_HTML, or what `make book` makes."""
    return Path(os.environ.get("POSBOOK_HTML", ROOT / "build" / "html")).resolve()


def is_built():
    return (location() / "index.html").is_file()


def page_paths(root):
    """Every page, by its path from the book's root; cheap enough for test collection."""
    found = (path.relative_to(root) for path in root.rglob("*.html"))
    return sorted(path.as_posix() for path in found if path.parts[0] not in NO_PAGES)


def is_chapter(path):
    folder, _, name = path.partition("/")
    return bool(name) and folder not in NO_CHAPTERS | NO_PAGES and name != "index.html"


def is_script_page(path):
    return path.startswith("gallery/") and path.rpartition("/")[2].startswith("plot_")


def is_remote(url):
    return url.startswith("//") or urlsplit(url).scheme in {"http", "https", "ftp", "ws", "wss"}


def text_of(element):
    """Visible text without the headerlink's sign."""
    words = " ".join(element.get_text(" ", strip=True).split())
    return words.rstrip("¶#").strip()


class Page:
    def __init__(self, book, path):
        self.book, self.path, self.file = book, path, book.root / path

    def __repr__(self):
        return self.path

    @cached_property
    def soup(self):
        soup = BeautifulSoup(self.file.read_text(encoding="utf-8"), "html.parser")
        # Most nodes of a chapter are typeset formulas: no check looks inside them, and they fill the memory.
        for formula in soup.select(".katex"):
            formula.clear()
        return soup

    @property
    def body(self):
        """The page's own text, without the theme's navigation around it."""
        return self.soup.select_one("[role=main]") or self.soup.select_one("article, main") or self.soup

    @cached_property
    def anchors(self):
        return [tag[key] for tag in self.soup.find_all(True) for key in ("id", "name") if tag.get(key)]

    def resolve(self, url, base=None):
        """The file that a relative `url` names, and the fragment; from `base` where a stylesheet says it."""
        parts = urlsplit(url)
        start = base or self.file
        file = start.parent / unquote(parts.path) if parts.path else start
        return Path(os.path.normpath(file)), unquote(parts.fragment)

    @cached_property
    def references(self):
        """(tag, attribute, url) for everything that the page names."""
        found = []
        for tag in self.soup.find_all(True):
            for key in ("href", "xlink:href", "src", "poster", "data"):
                if tag.get(key) is not None and (key != "data" or tag.name == "object"):
                    found.append((tag, key, tag[key].strip()))
            if tag.get("srcset"):
                found += [(tag, "srcset", url) for url in SRCSET_ITEM.findall(tag["srcset"])]
        return found

    @property
    def figures(self):
        """Pictures that show something: in a <figure>, or drawn by a gallery script; no thumbnails."""
        return [
            image
            for image in self.body.select("figure img, img[src*=sphx_glr_plot_]")
            if not is_thumbnail(image)
        ]


def is_thumbnail(image):
    return (
        "_thumb." in image.get("src", "") or image.find_parent(class_="sphx-glr-thumbcontainer") is not None
    )


class Book:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self._pages = {path: Page(self, path) for path in page_paths(self.root)}

    @property
    def pages(self):
        return list(self._pages.values())

    @property
    def chapters(self):
        return [page for page in self.pages if is_chapter(page.path)]

    @property
    def script_pages(self):
        return [page for page in self.pages if is_script_page(page.path)]

    def page(self, file):
        """The page in `file`, or None where that is no page of the book."""
        return self._pages.get(os.path.relpath(file, self.root))
