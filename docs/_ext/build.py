r"""Build the book, and say where it lies: what `make book` runs.

    python docs/_ext/build.py            take up what is there
    python docs/_ext/build.py --clean    from nothing
    python docs/_ext/build.py --strict   every warning is an error

A change in the package starts from nothing too, since sphinx-gallery would run no script again. A build that
broke off leaves a mark, so that the next one starts from nothing as well: half a page is never shown.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
UNFINISHED = BUILD / "unfinished"
PACKAGE = BUILD / "package.sha256"


def package_digest():
    """What the figures depend on besides their scripts: the package's source."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "posbook").rglob("*")):
        if path.is_file() and path.suffix in {".py", ".mplstyle", ".json"}:
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def remove_built():
    for folder in (BUILD / "html", BUILD / "doctrees", ROOT / "docs" / "gallery"):
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Build the book.")
    parser.add_argument("--clean", action="store_true", help="start from nothing")
    parser.add_argument("--strict", action="store_true", help="every warning is an error")
    options = parser.parse_args(arguments)

    start = time.monotonic()
    BUILD.mkdir(exist_ok=True)
    digest = package_digest()
    changed = not PACKAGE.exists() or PACKAGE.read_text() != digest
    if options.clean or changed or UNFINISHED.exists():
        remove_built()
    UNFINISHED.touch()
    command = [sys.executable, "-m", "sphinx", "-M", "html", "docs", "build", "-c", "."]
    command += ["-W", "--keep-going", "-n"] if options.strict else []
    failed = subprocess.run([*command, "-q"], cwd=ROOT).returncode
    if failed:
        print("The book was not built; what is wrong stands above.", file=sys.stderr)
        return failed
    PACKAGE.write_text(digest)
    UNFINISHED.unlink()
    index = BUILD / "html" / "index.html"
    size = sum(path.stat().st_size for path in index.parent.rglob("*") if path.is_file())
    print(f"{index}  ({size / 2**20:.1f} MiB, built in {time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
