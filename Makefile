# Two commands matter: `make book` builds the book, `make test` checks every sentence of it.
#
#   make book     build/html/index.html, from nothing or from what is there
#   make test     lint, tests, doctests, the prose, a warning-free build, the built book, the browser
#   make epub     build/epub/posbook.epub, for a book reader
#   make pdf      build/pdf/posbook.pdf, to print; needs Chromium
#   make env      install everything that any target needs, build nothing
#   make serve    rebuild and reload while you write
#   make cards    the questions of the book as an Anki deck and as CSV, in build/cards/
#   make figures  run each gallery script alone, as a reader would; figures in build/figures/
#   make experiments  train the small models of the book anew (an hour of one core), compare
#   make bench    time the rotation beside other libraries, on a quiet machine
#   make merit    Lighthouse's scores and the size of the book, for its colophon; needs Chromium, Node, the network
#   make links    ask for every address outside the book; needs the network
#   make lint     style of the code, spelling, and the rules of the prose
#   make clean    remove what was built (not the environment)
#
#   make PYTHON=python3.12 book     another interpreter
#   make TORCH="torch==2.9.1" book  another torch: any pip requirement, with options such as --index-url

PYTHON ?= python3
TORCH ?= torch
BIN := .venv/bin
SPHINX := $(BIN)/sphinx-build -M html docs build -c .
# Warnings of the tests are errors; these runs say so in pyproject.toml.
PYTEST := $(BIN)/python -m pytest -q

.PHONY: book epub pdf test env serve cards figures experiments bench merit links lint clean
.DELETE_ON_ERROR:

book: .venv/book
	@$(BIN)/python docs/_ext/build.py

epub pdf: .venv/book
	@$(BIN)/python docs/_ext/build.py --$@

test: .venv/book .venv/test lint
	$(PYTEST) tests -m "not book and not browser"
	$(PYTEST) --doctest-modules posbook
	$(PYTEST) docs README.md
	$(BIN)/python docs/_ext/build.py --clean --strict --epub
	$(PYTEST) tests/book -m book
	$(PYTEST) tests/browser -n 2

env: .venv/book .venv/test .venv/serve

serve: .venv/book .venv/serve
	$(BIN)/sphinx-autobuild -M html docs build -c . --watch posbook --watch examples --ignore "*/docs/gallery/*"

# The build writes them from the page on which the questions stand.
cards: book
	@mkdir -p build/cards && cp build/html/_downloads/cards/* build/cards/ && ls build/cards/*

figures: .venv/book
	@mkdir -p build/figures
	@cd build/figures && for script in ../../examples/*/plot_*.py; do \
		echo "$$script"; MPLBACKEND=Agg ../../$(BIN)/python $$script || exit 1; done

experiments: .venv/test
	$(BIN)/python -m posbook.experiments all

bench: .venv/test
	$(BIN)/python -m tests.peers.bench

# MERIT=--builds times the builds, too: several minutes.
merit: .venv/test book
	$(BIN)/python -m tests.merit.measure $(MERIT)

links: .venv/test book
	$(BIN)/python -m tests.merit.links

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python docs/_ext/prose.py docs

clean:
	rm -rf build docs/gallery

# --- the environment ------------------------------------------------------------------------------------------
# Each stamp is written last: an interrupted installation has none, and is taken up again by the next make.

.venv/made:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here: install Python 3.11 or newer."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "posbook needs Python 3.11 or newer, and this is $$($(PYTHON) -V 2>&1): install a newer one, or say make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "Python has no venv module here: install it (on Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@touch $@

# The torch that was asked for; its file changes only when the wish does.
.venv/torch: .venv/made FORCE
	@echo '$(TORCH)' | cmp -s - $@ || echo '$(TORCH)' > $@
FORCE:

# constraints.txt pins torch too, unless another one was asked for.
.venv/constraints.txt: constraints.txt .venv/torch
	@if [ '$(TORCH)' = torch ]; then cp constraints.txt $@; else grep -v '^torch==' constraints.txt > $@; fi

.venv/book: pyproject.toml .venv/constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c .venv/constraints.txt $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check -c .venv/constraints.txt -e '.[book]'
	@touch $@

.venv/test .venv/serve: .venv/%: .venv/book
	$(BIN)/pip install --quiet --disable-pip-version-check -c .venv/constraints.txt -e '.[book,$*]'
	@touch $@
