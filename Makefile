# Two commands do all set-up: `make demo` and `make test`. The environment is kept in .venv.
PYTHON ?= python3.11
BIN := .venv/bin
BASE := .venv/.base
STAMP := .venv/.installed

.PHONY: demo demo-network test test-fast check bench reproductions docs pictures clean

$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]"
	touch $(BASE)

$(STAMP): $(BASE)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,check]"
	touch $(STAMP)

demo: $(BASE)            ## the main job on generated data
	$(BIN)/confide demo

demo-network: $(BASE)    ## five real nodes on this machine, one of them killed and restarted
	$(BIN)/confide demo --network

test: $(STAMP)           ## everything
	$(BIN)/pytest -n auto

test-fast: $(STAMP)      ## under five minutes, for daily work
	$(BIN)/pytest -n auto -m "not slow"

check: $(STAMP)          ## lint and types
	$(BIN)/ruff check src tests benchmarks experiments docs
	$(BIN)/mypy

reproductions: $(STAMP)  ## every figure and table of the papers, with verdicts: docs/reproductions/index.md
	$(BIN)/confide reproduce --all --out docs/reproductions

docs: $(STAMP)           ## the site, into site/; needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(STAMP)       ## the pictures of README and of the site's first page: docs/pictures
	$(BIN)/python docs/_site/pictures.py

bench: $(STAMP)          ## ratios, side by side in one run
	$(BIN)/confide bench

clean:
	rm -rf .venv build dist demo demo-network site
