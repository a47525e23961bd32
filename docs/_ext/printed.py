r"""One PDF of the whole book, printed by Chromium from the built pages: what `make pdf` runs.

One file, not one a part: chapters lean on theorems and figures of other parts, and only inside one file do
such references stay links. The pages stand in the order of the book, solutions come at the end, and the
gallery's scripts stay out: they are read on a screen, and run.
"""

import os
import re
import shutil
import subprocess
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

LEFT_OUT = ("gallery/",)
STYLE = Path(__file__).with_name("printed.css")
NO_CHROMIUM = "make pdf needs Chromium: apt-get install chromium, or name one in CHROMIUM"


def contents(html):
    """(caption, {page: title}) of each part, from the contents that stand beside every page."""
    index = BeautifulSoup(html.joinpath("index.html").read_text(encoding="utf-8"), "html.parser")
    parts = [("", {"index.html": index.find("h1").find(string=True).strip()})]
    for tag in index.select(".sidebar-tree p.caption, .sidebar-tree a.reference"):
        if tag.name == "p":
            parts.append((tag.get_text(strip=True), {}))
        elif not tag["href"].startswith(LEFT_OUT):
            parts[-1][1][unquote(tag["href"])] = tag.get_text()
    return [(caption, pages) for caption, pages in parts if pages]


class Pages:
    """The built pages as sections of one document: ids, links and pictures as they are there."""

    def __init__(self, html, folder):
        self.html, self.folder = Path(html), Path(folder)
        self.parts = contents(self.html)
        self.titles = {name: title for _, pages in self.parts for name, title in pages.items()}
        self.soups = {name: self.read(name) for name in self.titles}
        # As they are now: a page's ids change when it becomes a section, and later pages still ask for them.
        self.ids = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in self.soups.items()}
        self.solutions = []

    def read(self, name):
        return BeautifulSoup(self.html.joinpath(name).read_text(encoding="utf-8"), "html.parser")

    def place(self, name, fragment=""):
        """The id in the whole book of a fragment of a page."""
        page = name.removesuffix(".html").replace("/", "-")
        return f"{page}--{fragment}" if fragment else page

    def target(self, name, url):
        """Where a link of the page `name` leads in the book, or None where it leaves it."""
        parts = urlsplit(url)
        path = os.path.normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
        if parts.scheme or path not in self.soups:
            return None
        fragment = unquote(parts.fragment)
        return "#" + self.place(path, fragment if fragment in self.ids[path] else "")

    def section(self, name):
        soup = self.soups[name]
        article = soup.select_one("article[role=main]")
        # A reference page's thumbnails lead to scripts, and would print each figure a second time.
        thumbnails = ".sphx-glr-thumbnails, .rubric:has(~ .sphx-glr-thumbnails)"
        for tag in article.select(f".headerlink, script, {thumbnails}"):
            tag.decompose()
        address = (soup.select_one("link[rel=canonical]") or {}).get("href")
        for tag in article.select("a[href]"):
            target = self.target(name, tag["href"])
            if target:
                tag["href"] = target
            elif not urlsplit(tag["href"]).scheme:
                if address:  # what is left out is found on the web, if the book is there
                    base = address.removesuffix(name)
                    tag["href"] = base + os.path.normpath(Path(name).parent / tag["href"])
                else:
                    tag.unwrap()
        for tag in article.select("img[src]"):
            tag["src"] = os.path.relpath(self.html / Path(name).parent / tag["src"], self.folder)
        for tag in article.find_all(True):
            if tag.get("id"):
                tag["id"] = self.place(name, tag["id"])
            for key in ("aria-labelledby", "aria-describedby"):
                if tag.get(key):
                    tag[key] = " ".join(self.place(name, each) for each in tag[key].split())
            if re.fullmatch("h[1-5]", tag.name):  # parts stand above the pages
                tag.name = f"h{int(tag.name[1]) + 1}"
        for folded in article.select("details:not(.solution)"):  # paper unfolds nothing
            folded.name, folded.summary.name = "div", "p"
        self.take_solutions(name, article)
        article.name, article.attrs = "section", {"class": "page", "id": self.place(name)}
        return article

    def take_solutions(self, name, article):
        """Move the solutions to the end, so that nobody reads one before he has tried."""
        found = article.select("details.solution")
        for number, solution in enumerate(found):
            # The folded answers of a page of questions have no name of their own.
            solution["id"] = solution.get("id") or f"{self.place(name)}-answer-{number}"
            link = BeautifulSoup(
                f'<p class="to-solution"><a href="#{solution["id"]}">Solution</a></p>', "html.parser"
            )
            solution.replace_with(link)
            solution.name = "div"
            solution.summary.name = "h4"
            for tag in solution.select("h5, h6"):
                tag.name = "p"
        if found:
            self.solutions.append((self.titles[name], self.place(name), found))

    def styles(self):
        """The stylesheets of all pages, each once, seen from the folder of the whole."""
        found = {}
        for name, soup in self.soups.items():
            for tag in soup.select("link[rel=stylesheet][href]"):
                file = self.html / Path(name).parent / urlsplit(tag["href"]).path
                found[os.path.relpath(file, self.folder)] = tag.get("media", "")
        return [path for path, media in found.items() if "dark" not in media]


def assemble(html, folder):
    """The whole book as the text of one page that lies in `folder`."""
    pages = Pages(html, folder)
    index, title = pages.soups["index.html"], pages.titles["index.html"]
    foot = index.select_one("p.licence")
    rights = " ".join(index.select_one(".copyright").get_text().split())
    head = f'<p class="name">{escape(title)}</p><p>{escape(rights)}</p>{foot}'
    links, written = [], []
    for number, (caption, names) in enumerate(pages.parts):
        links.append(f"<li>{escape(caption)}<ul>")
        if caption:
            written.append(f'<h1 class="part" id="part-{number}">{escape(caption)}</h1>')
        for name, heading in names.items():
            links.append(f'<li><a href="#{pages.place(name)}">{escape(heading)}</a></li>')
            written.append(str(pages.section(name)))
        links.append("</ul></li>")
    if pages.solutions:
        links.append('<li><a href="#solutions">Solutions</a></li>')
        written.append('<h1 class="part" id="solutions">Solutions</h1>')
        for heading, place, found in pages.solutions:
            written.append(f'<h3 class="solved"><a href="#{place}">{escape(heading)}</a></h3>')
            written += map(str, found)
    styles = [f'<link rel="stylesheet" href="{escape(path)}">' for path in pages.styles()]
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            *styles,
            f"<style>{STYLE.read_text(encoding='utf-8')}</style></head>",
            '<body data-theme="light"><article role="main">',
            f'<section class="title">{head}</section>',
            f'<nav class="all-pages"><p class="name">Contents</p><ul>{"".join(links)}</ul></nav>',
            *written,
            "</article></body></html>",
        ]
    )


def chromium():
    named = os.environ.get("CHROMIUM")
    found = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, found) if path), None)


def write(html, folder):
    """folder/posbook.pdf, and the page it was printed from beside it; ValueError says what is missing."""
    browser = chromium()
    if browser is None:
        raise ValueError(NO_CHROMIUM)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page, pdf = folder / "posbook.html", folder / "posbook.pdf"
    page.write_text(assemble(html, folder), encoding="utf-8")
    pdf.unlink(missing_ok=True)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command += ["--generate-pdf-document-outline", f"--print-to-pdf={pdf}", page.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode or not pdf.exists():
        raise ValueError(f"Chromium printed nothing: {done.stderr.strip()[-500:]}")
    return pdf
