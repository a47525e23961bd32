"""The EPUB is whole: every page can be parsed, all it names is inside it, maths is MathML, no script runs."""

import os
import posixpath
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from tests.book.pages import location, page_paths
from tests.book.test_built import BUILT, none

EPUB = Path(os.environ.get("POSBOOK_EPUB", location().parent / "epub" / "posbook.epub"))
pytestmark = BUILT
XHTML, OPF = "{http://www.w3.org/1999/xhtml}", "{http://www.idpf.org/2007/opf}"
MATHS = "{http://www.w3.org/1998/Math/MathML}math"


class Epub:
    def __init__(self, file):
        with zipfile.ZipFile(file) as packed:
            self.names = packed.namelist()
            self.stored = packed.getinfo("mimetype").compress_type == zipfile.ZIP_STORED
            self.files = {name: packed.read(name) for name in self.names}
        self.pages = {  # a page that is not well-formed is refused here
            name: ElementTree.fromstring(content)
            for name, content in self.files.items()
            if name.endswith(".xhtml")
        }
        self.manifest = ElementTree.fromstring(self.files["content.opf"])

    def links(self, name):
        """(element, url) for all that a page names."""
        for element in self.pages[name].iter():
            for key in ("href", "src", "{http://www.w3.org/1999/xlink}href", "poster", "data"):
                if element.get(key):
                    yield element, element.get(key)

    def items(self):
        return {item.get("href"): item for item in self.manifest.iter(f"{OPF}item")}


@pytest.fixture(scope="module")
def epub():
    if not EPUB.is_file():
        pytest.fail("make the EPUB first: make epub", pytrace=False)
    return Epub(EPUB)


def test_begins_with_its_type_as_it_is(epub):
    assert epub.names[0] == "mimetype"
    assert epub.stored
    assert epub.files["mimetype"].strip() == b"application/epub+zip"


def test_has_every_page_of_the_book(epub):
    generated = {"genindex.html", "search.html", "py-modindex.html"}
    pages = {
        path for path in page_paths(location()) if path not in generated and not path.startswith("_modules")
    }
    none(
        [f"{page} is missing" for page in sorted(pages) if page.replace(".html", ".xhtml") not in epub.pages]
    )


def test_shows_a_cover_on_the_shelf(epub):
    covers = [item for item in epub.items().values() if "cover-image" in item.get("properties", "")]
    assert len(covers) == 1
    assert epub.files[covers[0].get("href")].startswith(b"\x89PNG")


def test_names_nothing_that_is_not_inside_it_and_loads_nothing_from_the_network(epub):
    ids = {name: {e.get("id") for e in page.iter() if e.get("id")} for name, page in epub.pages.items()}
    faults = []
    for name in epub.pages:
        for element, url in epub.links(name):
            parts = urlsplit(url)
            if parts.scheme:
                if element.tag != f"{XHTML}a":
                    faults.append(f"{name}: <{element.tag}> loads {url}")
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            path = path if parts.path else name
            if path not in epub.files:
                faults.append(f"{name}: {url} is not in the EPUB")
            elif parts.fragment and unquote(parts.fragment) not in ids[path]:
                faults.append(f"{name}: {url} has no such anchor")
    for name, content in epub.files.items():
        if name.endswith((".css", ".svg")):
            urls = re.findall(r"url\(['\"]?(?!#)([^)'\"]+)|@import|<!DOCTYPE", content.decode())
            faults += [f"{name}: names {url or 'another file'}" for url in urls]
    none(faults)


def test_runs_no_script(epub):
    faults = [f"{name} is a script" for name in epub.names if name.endswith((".js", ".mjs"))]
    for name, page in epub.pages.items():
        for element in page.iter():
            if element.tag == f"{XHTML}script" or any(key.startswith("on") for key in element.attrib):
                faults.append(f"{name}: <{element.tag.removeprefix(XHTML)}> runs a script")
            if element.tag.startswith(XHTML) and "-" in element.tag.removeprefix(XHTML):
                faults.append(f"{name}: <{element.tag.removeprefix(XHTML)}> needs a script")
    none(faults)


def test_describes_every_picture_but_for_thumbnails_beside_their_titles(epub):
    faults = []
    for name, page in epub.pages.items():
        above = {child: parent for parent in page.iter() for child in parent}
        for image in page.iter(f"{XHTML}img"):
            box, around = image, []
            while box in above:
                box = above[box]
                around.append(box.get("class") or "")
            thumbnail = any("sphx-glr-thumbcontainer" in each for each in around)
            if image.get("alt") is None or (len(image.get("alt")) < 60 and not thumbnail):
                faults.append(f"{name}: {image.get('src')} has the alt {image.get('alt')!r}")
    none(faults)


def test_has_its_formulas_as_mathml_and_says_where(epub):
    items, faults = epub.items(), []
    with_maths = {name for name, page in epub.pages.items() if page.find(f".//{MATHS}") is not None}
    assert len(with_maths) > 10
    for name, page in epub.pages.items():
        declared = "mathml" in (items[name].get("properties") or "").split()
        if declared != (name in with_maths):
            faults.append(f"{name}: the manifest says {declared} of its formulas")
        if any("katex-html" in (element.get("class") or "") for element in page.iter()):
            faults.append(f"{name}: a formula is drawn as well")
    none(faults)


def test_shows_the_steps_of_figures_that_move(epub):
    steps = [e for e in epub.pages["absolute/clocks.xhtml"].iter() if e.get("class") == "step"]
    assert len(steps) == 7
    assert all(step.find(f".//{XHTML}img") is not None for step in steps)


def test_lists_every_part_in_its_contents(epub):
    names = [link.get("href") for link in epub.pages["nav.xhtml"].iter(f"{XHTML}a")]
    for page in ("why/symmetry", "absolute/clocks", "relative/alibi", "rotary/rotation", "bibliography"):
        assert f"{page}.xhtml" in names


def command():
    """Epubcheck as it is installed; Debian's is a jar that only some machines can start by itself."""
    found = shutil.which("epubcheck")
    if not found:
        pytest.skip("no epubcheck: apt-get install epubcheck default-jre-headless")
    with Path(found).open("rb") as file:
        return ["java", "-jar", found] if file.read(2) == b"PK" else [found]


def test_passes_epubcheck(epub):
    done = subprocess.run([*command(), str(EPUB)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stderr + done.stdout)[:4000]
