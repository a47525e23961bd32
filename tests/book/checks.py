r"""What must be true of the built book: each check takes pages and returns faults, `page: what is wrong`."""

import gzip
import hashlib
import json
import re
from collections import defaultdict

from tests.book.pages import is_remote, is_script_page, is_thumbnail, text_of

KB = 1000
PAGE_LIMIT, LOADED_LIMIT, PICTURE_LIMIT = 400 * KB, 350 * KB, 120 * KB
LEAST_ALT = 60

# fmt: off
LOADING_LINKS = {
    "stylesheet", "icon", "apple-touch-icon", "mask-icon", "manifest",
    "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch",
}
LOADING_TAGS = {
    "img", "image", "use", "script", "iframe", "object", "embed",
    "source", "video", "audio", "track", "input",
}
# fmt: on
CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]", re.IGNORECASE)
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LICENCE = re.compile(r"\bCC BY\b|\blicen[cs]e", re.IGNORECASE)


def css_urls(text):
    return [first or second for first, second in CSS_URL.findall(CSS_COMMENT.sub("", text))]


def is_loaded(tag):
    """Whether the browser fetches what the tag names without being asked."""
    return tag.name in LOADING_TAGS or (tag.name == "link" and bool(LOADING_LINKS & set(tag.get("rel", []))))


def stylesheets(page):
    """The stylesheets that the page loads, those they import included."""
    waiting = [
        page.resolve(tag["href"])[0]
        for tag in page.soup.select("link[rel~=stylesheet][href]")
        if not is_remote(tag["href"])
    ]
    found = []
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.append(file)
        for url in css_urls(file.read_text(encoding="utf-8")):
            if url.partition("?")[0].endswith(".css") and not is_remote(url):
                waiting.append(page.resolve(url, base=file)[0])
    return found


def inline_css(page):
    blocks = [tag.get_text() for tag in page.soup.find_all("style")]
    return blocks + [tag["style"] for tag in page.soup.find_all(style=True)]


def pictures(page):
    """The picture files that the page shows."""
    shown = {
        page.resolve(url)[0]
        for tag, key, url in page.references
        if (tag.name in {"img", "source", "image"} or key == "poster") and not is_remote(url)
    }
    return sorted(file for file in shown if file.is_file())


def remote_resources(pages):
    """Nothing comes from the network: a page that needs it is blank for a reader who is offline."""
    faults, css, svg = [], {}, {}
    for page in pages:
        for tag, key, url in page.references:
            if is_loaded(tag) and is_remote(url):
                faults.append(f"{page}: <{tag.name} {key}> loads {url}")
        faults += [
            f"{page}: a style loads {url}" for t in inline_css(page) for url in css_urls(t) if is_remote(url)
        ]
        css.update(dict.fromkeys(stylesheets(page), page))
        svg.update({file: page for file in pictures(page) if file.suffix == ".svg"})
    for file, page in css.items():
        urls = css_urls(file.read_text(encoding="utf-8"))
        faults += [f"{page}: {file.name} loads {url}" for url in urls if is_remote(url)]
    for file, page in svg.items():
        text = file.read_text(encoding="utf-8")
        urls = css_urls(text) + re.findall(r"<(?:image|use)\b[^>]*\bhref=\"([^\"]+)", text)
        faults += [f"{page}: {file.name} loads {url}" for url in urls if is_remote(url)]
    return faults


def broken_links(pages):
    """Every relative url of a page or stylesheet leads to a file, every fragment to an anchor."""
    faults, css = [], {}
    for page in pages:
        for tag, _, url in page.references:
            if is_remote(url) or re.match(r"(mailto|data|javascript|tel):", url) or url in {"#", "#top"}:
                continue
            if url.startswith("/"):
                faults.append(f"{page}: <{tag.name}> names {url}, which a folder on a disk does not have")
                continue
            file, fragment = page.resolve(url)
            target = page.book.page(file)
            if not file.is_file():
                faults.append(f"{page}: <{tag.name}> names {url}, and there is no such file")
            elif fragment and target and fragment not in target.anchors:
                faults.append(f"{page}: <{tag.name}> names {url}, and that page has no such anchor")
        css.update(dict.fromkeys(stylesheets(page), page))
    for file, page in css.items():
        for url in css_urls(file.read_text(encoding="utf-8")):
            if is_remote(url) or url.startswith(("data:", "#")):
                continue
            if not page.resolve(url, base=file)[0].is_file():
                faults.append(f"{page}: {file.name} names {url}, and there is no such file")
    return faults


def repeated_ids(pages):
    """An id that stands twice makes the second anchor unreachable."""
    faults = []
    for page in pages:
        ids = [tag["id"] for tag in page.soup.find_all(id=True)]
        faults += [
            f"{page}: id {name!r} stands {ids.count(name)} times"
            for name in sorted(set(ids))
            if ids.count(name) > 1
        ]
    return faults


def missing_alt(pages):
    faults = []
    for page in pages:
        for image in page.soup.find_all("img"):
            hidden = image.get("role") in {"presentation", "none"} or image.find_parent(
                attrs={"aria-hidden": "true"}
            )
            hidden = hidden or image.get("aria-hidden") == "true"
            # A thumbnail stands beside its title, which says the same: alt="" is its mark as decoration.
            decorative = hidden or is_thumbnail(image)
            if image.get("alt") is None or (not image["alt"].strip() and not decorative):
                faults.append(f"{page}: {image.get('src')} has no alt text")
    return faults


def poor_alt(pages):
    """A figure's alt says what is seen, and no two figures are described by the same words."""
    faults, seen = [], defaultdict(dict)
    for page in pages:
        for image in page.figures:
            alt = " ".join(image.get("alt", "").split())
            if len(alt) < LEAST_ALT:
                faults.append(
                    f"{page}: the alt of {image['src']} has {len(alt)} characters, of at least {LEAST_ALT}"
                )
            file = page.resolve(image["src"])[0]
            if file.is_file():
                seen[alt].setdefault(hashlib.sha256(file.read_bytes()).digest(), f"{page} ({file.name})")
    for alt, places in seen.items():
        if len(places) > 1 and alt:
            faults.append(f"{' and '.join(places.values())}: two figures with the alt {alt[:LEAST_ALT]!r}")
    return faults


def heavy_pages(pages):
    faults = []
    for page in pages:
        size = page.file.stat().st_size
        if size > PAGE_LIMIT:
            faults.append(f"{page}: {size // KB} KB of HTML, of at most {PAGE_LIMIT // KB}")
        scripts = {
            page.resolve(tag["src"])[0]
            for tag in page.soup.select("script[src]")
            if not is_remote(tag["src"])
        }
        loaded = sum(file.stat().st_size for file in {*scripts, *stylesheets(page)} if file.is_file())
        if loaded > LOADED_LIMIT:
            faults.append(f"{page}: {loaded // KB} KB of styles and scripts, of at most {LOADED_LIMIT // KB}")
    return faults


def heavy_pictures(pages):
    faults = []
    shown_on = {file: shown for shown in pages for file in pictures(shown)}
    for file, page in shown_on.items():
        content = file.read_bytes()
        size = len(gzip.compress(content)) if file.suffix == ".svg" else len(content)
        if size > PICTURE_LIMIT:
            faults.append(f"{page}: {file.name} weighs {size // KB} KB, of at most {PICTURE_LIMIT // KB}")
    return faults


def disordered_headings(chapters):
    """One h1, first, and no level skipped: a screen reader walks a page by its headings."""
    faults = []
    for page in chapters:
        headings = page.soup.find_all(re.compile("^h[1-6]$"))
        levels = [int(heading.name[1]) for heading in headings]
        if levels.count(1) != 1:
            faults.append(f"{page}: {levels.count(1)} h1, not one")
        for before, level, heading in zip([0, *levels], levels, headings, strict=False):
            if level > before + 1:
                faults.append(f"{page}: {heading.name} {text_of(heading)!r} follows an h{before}")
    return faults


def missing_practice(chapters):
    faults = []
    for page in chapters:
        for kind in ("proof", "computation"):
            if not page.body.select(f".exercise.{kind}"):
                faults.append(f"{page}: no exercise of class {kind}")
    return faults


def title_of(exercise):
    title = exercise.select_one(".admonition-title")
    return text_of(title) if title else exercise.get("id", "an exercise")


def unsolved_exercises(chapters):
    """Each exercise has a solution, folded in a native <details>, which every keyboard opens."""
    faults = []
    for page in chapters:
        solutions = page.body.select(".solution")
        heads = []
        for solution in solutions:
            fold = (
                solution
                if solution.name == "details"
                else solution.find_parent("details") or solution.find("details")
            )
            head = fold.find("summary") if fold else solution.select_one(".admonition-title")
            heads.append(head)
            name = text_of(head) if head else solution.get("id", "a solution")
            if fold is None or head is None or not text_of(head):
                faults.append(f"{page}: {name!r} is not a <details> with a <summary>")
            elif fold.has_attr("open"):
                faults.append(f"{page}: {name!r} is open before the reader has tried")
        for exercise in page.body.select(".exercise"):
            link = f"#{exercise.get('id')}"
            # The number ends where a word ends: Exercise 1 is not solved by the solution to Exercise 10.
            title = re.compile(re.escape(title_of(exercise)) + r"(?!\w)")
            if not any(head and (title.search(text_of(head)) or head.find("a", href=link)) for head in heads):
                faults.append(f"{page}: {title_of(exercise)!r} has no solution")
    return faults


def missing_licence(pages):
    faults = []
    for page in pages:
        footers = page.soup.select("footer, [role=contentinfo]")
        if not any(LICENCE.search(text_of(footer)) for footer in footers):
            faults.append(f"{page}: the footer names no licence")
    return faults


def missing_keepsake(chapters):
    wanted = "what we keep"
    return [
        f"{page}: no heading 'What we keep'"
        for page in chapters
        if not any(text_of(h).lower() == wanted for h in page.body.find_all(re.compile("^h[2-6]$")))
    ]


def pages_without_figure(chapters):
    return [f"{page}: no figure" for page in chapters if not page.figures]


def unlinked_figures(chapters):
    """A figure leads to the script that drew it, and the script's page leads back."""
    faults = []
    for page in chapters:
        for image in page.figures:
            around = image.find_parent("figure") or image.find_parent("a") or image
            links = [
                page.book.page(page.resolve(tag["href"])[0])
                for tag in [around, *around.select("a[href]")]
                if tag.get("href")
            ]
            scripts = [target for target in links if target and is_script_page(target.path)]
            if not scripts:
                faults.append(f"{page}: {image['src']} does not link to its script")
            for script in set(scripts):
                back = [
                    script.resolve(tag["href"])[0]
                    for tag in script.body.select("a[href]")
                    if not is_remote(tag["href"])
                ]
                if page.file not in back:
                    faults.append(f"{script}: does not link back to {page}, which shows its figure")
    return faults


def missing_downloads(script_pages):
    faults = []
    for page in script_pages:
        for suffix in (".py", ".ipynb", ".svg", ".png"):
            if not page.body.select(f"a.download[href$='{suffix}']"):
                faults.append(f"{page}: no {suffix} to download")
    return faults


def unlicensed_files(pages):
    """A figure that was taken away from its page still says what may be done with it."""
    faults = []
    for page in pages:
        for link in page.body.select("a.download[href$='.svg'], a.download[href$='.png']"):
            file = page.resolve(link["href"])[0]
            if file.is_file() and b"CC BY 4.0" not in file.read_bytes():
                faults.append(f"{page}: {file.name} does not name its licence")
    return faults


def repeated_pictures(pages):
    """No picture lies in the book twice under two names."""
    faults, seen = [], {}
    for file in sorted(pages[0].book.root.rglob("*.svg")):
        content = hashlib.sha256(file.read_bytes()).digest()
        if content in seen:
            faults.append(f"{file.name} is a copy of {seen[content].name}")
        seen[content] = file
    return faults


def unsearchable(pages):
    """The search runs from a folder: its index is a script that search.html loads, and knows every page."""
    faults = []
    book = pages[0].book
    index, search = book.root / "searchindex.js", book.page(book.root / "search.html")
    if search is None:
        faults.append("search.html: there is no search page")
    elif not any("searchindex.js" in tag["src"] for tag in search.soup.select("script[src]")):
        faults.append("search.html: does not load searchindex.js")
    if not index.is_file():
        return [*faults, "searchindex.js: there is no search index"]
    known = re.search(r'"?docnames"?:\s*(\[.*?\])', index.read_text(encoding="utf-8"))
    known = set(json.loads(known[1])) if known else set()
    written = [
        page for page in pages if page.soup.select_one("[role=main] h1") and (book.root / "_sources").is_dir()
    ]
    for page in written:
        source = page.path.removesuffix(".html")
        if list((book.root / "_sources").glob(f"{source}.*")) and source not in known:
            faults.append(f"{page}: is not in the search index")
    return faults


def machine_only(pages):
    """Nothing asks a reader for a server or a console: no live kernels, no launch buttons."""
    faults = []
    for page in pages:
        for tag in page.soup.select(
            ".thebe-button, .launch-button, .btn-launch, [data-executable], .binder-badge"
        ):
            faults.append(f"{page}: <{tag.name} class={' '.join(tag.get('class', []))}> needs a server")
    return faults
