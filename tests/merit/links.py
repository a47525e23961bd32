r"""Addresses outside the book: listed with the page that names them, and asked for once each.

    python -m tests.merit.links           what `make links` runs; needs the network
    python -m tests.merit.links --list    only list them

An address is *gone* where the host answers 404 or 410, or has no name any more. Some hosts turn programs away
(401, 403, 429), and some do not answer in time: those are *unclear*, and a person has to look. Where no host
answers at all, there is no network, and nothing is said about any address.
"""

import argparse
import socket
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from urllib.parse import urldefrag, urlsplit

from tests.book.pages import Book, is_built, location

GONE = {404, 410}
LANES, PATIENCE = 8, 20  # requests at a time; seconds
SHOWN = 5  # pages that name an address which is gone
AGENT = "Mozilla/5.0 (compatible; posbook, make links)"


def external(book):
    """Address to the pages that link to it, without fragments, which a host never sees."""
    found = defaultdict(list)
    for page in book.pages:
        for tag, key, url in page.references:
            if tag.name == "a" and key == "href" and urlsplit(url).scheme in {"http", "https"}:
                address = urldefrag(url).url
                if page.path not in found[address]:
                    found[address].append(page.path)
    return dict(sorted(found.items()))


def ask(address):
    """(verdict, what was answered): fine, gone or unclear."""
    request = urllib.request.Request(address, headers={"User-Agent": AGENT})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return "fine", str(answer.status)
    except urllib.error.HTTPError as error:
        return ("gone" if error.code in GONE else "unclear"), str(error.code)
    except urllib.error.URLError as error:
        nameless = isinstance(error.reason, socket.gaierror) and error.reason.errno == socket.EAI_NONAME
        return ("gone" if nameless else "unclear"), str(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        return "unclear", str(error) or type(error).__name__


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Check the links that leave the book.")
    parser.add_argument("--list", action="store_true", help="ask nobody, only list them")
    options = parser.parse_args(arguments)
    if not is_built():
        sys.exit("build the book first: make book")
    pages = external(Book(location()))
    if options.list:
        for address, naming in pages.items():
            print(f"{address}  ({naming[0]}{', …' * (len(naming) > 1)})")
        return 0
    with ThreadPoolExecutor(LANES) as pool:
        answers = list(pool.map(ask, pages))
    if not any(said.isdecimal() for _, said in answers):
        sys.exit(f"There seems to be no network here; {len(pages)} addresses were not checked.")
    verdicts = [verdict for verdict, _ in answers]
    for (address, naming), (verdict, said) in zip(pages.items(), answers, strict=True):
        print(f"{verdict:8} {address}  ({said})")
        if verdict == "gone":
            print(*(f"         on {page}" for page in naming[:SHOWN]), sep="\n")
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("fine", "unclear", "gone")))
    return 1 if "gone" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
