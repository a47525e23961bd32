r"""Build the book, and say where it lies: what `make book` runs.

    python docs/_ext/build.py            take up what is there; nothing to do where nothing changed
    python docs/_ext/build.py --clean    from nothing
    python docs/_ext/build.py --strict   every warning is an error
    python docs/_ext/build.py --epub     the EPUB, too: build/epub/posbook.epub
    python docs/_ext/build.py --pdf      the PDF, too, printed by Chromium: build/pdf/posbook.pdf

A change in the package or in the book's machinery starts from nothing too, since neither Sphinx nor
sphinx-gallery would notice it. A build that broke off leaves no mark of being finished, so that the next one
starts from nothing as well: half a page is never shown.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ("posbook", "docs/_ext", "pyproject.toml", "constraints.txt")
PROSE = ("docs", "examples", "conf.py")


def digest(root, names):
    """One number for the contents of files and folders, but for what is generated."""
    total = hashlib.sha256()
    for name in names:
        path = root / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            generated = "__pycache__" in file.parts or root / "docs" / "gallery" in file.parents
            if file.is_file() and not generated:
                total.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return total.hexdigest()


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description="Build the book.")
    parser.add_argument("--clean", action="store_true", help="start from nothing")
    parser.add_argument("--strict", action="store_true", help="every warning is an error")
    parser.add_argument("--epub", action="store_true", help="make the EPUB, too")
    parser.add_argument("--pdf", action="store_true", help="print the PDF, too")
    options = parser.parse_args(arguments)

    start = time.monotonic()
    build = root / "build"
    build.mkdir(exist_ok=True)
    finished = build / "finished"  # what the last whole build was built from
    package, prose = digest(root, PACKAGE), digest(root, PROSE)
    before = finished.read_text().split() if finished.exists() else [None, None]
    index = build / "html" / "index.html"
    if options.clean or options.strict or before != [package, prose] or not index.exists():
        finished.unlink(missing_ok=True)
        if options.clean or before[0] != package:
            for folder in (build / "html", build / "doctrees", root / "docs" / "gallery"):
                shutil.rmtree(folder, ignore_errors=True)
        failed = sphinx("html", root, options.strict)
        if failed:
            print("The book was not built; what is wrong stands above.", file=sys.stderr)
            return failed
        finished.write_text(f"{package} {prose}")
    size = sum(path.stat().st_size for path in index.parent.rglob("*") if path.is_file())
    print(f"{index}  ({size / 2**20:.1f} MiB, built in {time.monotonic() - start:.0f} s)")
    failed = epub(build, options.strict) if options.epub else 0
    return failed or (pdf(build) if options.pdf else 0)


def sphinx(builder, root, strict):
    command = [sys.executable, "-m", "sphinx", "-M", builder, "docs", "build", "-c", ".", "-q"]
    return subprocess.run([*command, *(["-W", "--keep-going", "-n"] if strict else [])], cwd=root).returncode


def epub(build, strict):
    """The EPUB of the pages as they were read for the html."""
    shutil.rmtree(build / "epub", ignore_errors=True)  # whatever lies there would be packed
    failed = sphinx("epub", build.parent, strict)
    book = build / "epub" / "posbook.epub"
    if failed or not book.exists():
        print("The EPUB was not made; what is wrong stands above.", file=sys.stderr)
        return failed or 1
    print(f"{book}  ({book.stat().st_size / 2**20:.1f} MiB)")
    return 0


def pdf(build):
    """The PDF of the built pages."""
    import printed  # it needs what the book needs; this file alone needs nothing

    try:
        book = printed.write(build / "html", build / "pdf")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{book}  ({book.stat().st_size / 2**20:.1f} MiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
