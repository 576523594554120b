# Two commands do all set-up: `make demo` and `make test`. The environment is kept in .venv.
PYTHON ?= python3.11
BIN := .venv/bin
BASE := .venv/.base
STAMP := .venv/.installed

# data of the papers' experiments: CONFIDE_DATA, else a folder beside the checkout
SHARED := $(wildcard $(CURDIR)/../shared/data)

PYTEST := $(BIN)/pytest -n auto --dist loadgroup --no-loadscope-reorder --durations=20

# hundreds of tests start a Python of their own, which would compile all of the package without bytecode
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo demo-network test test-fast test-long test-pythons check bench reproductions docs pictures clean

$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]"
	touch $(BASE)

$(STAMP): $(BASE)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,check]"
	touch $(STAMP)

demo: $(BASE)            ## the main job on generated data
	$(BIN)/confide demo

demo-network: $(BASE)    ## five real nodes on this machine, one killed and restarted, one behind a relay
	$(BIN)/confide demo --network

test: $(STAMP)           ## all but what takes long
	$(PYTEST) -m "not long"

test-fast: $(STAMP)      ## under three minutes, for daily work
	$(PYTEST) -m "not slow"

test-long: $(STAMP)      ## whole reproductions, chaos, wheels, the site, browsers
	$(PYTEST) -m long

test-pythons: $(STAMP)   ## the suite's core on every other Python from 3.11 on that is found
	.ci/pythons

check: $(STAMP)          ## lint, format and types
	$(BIN)/ruff check src tests benchmarks experiments docs
	$(BIN)/ruff format --check --quiet src tests benchmarks experiments docs
	$(BIN)/mypy

reproductions: $(STAMP)  ## every figure and table of the papers, with verdicts: docs/reproductions/index.md
	$(if $(CONFIDE_DATA)$(SHARED),CONFIDE_DATA="$(or $(CONFIDE_DATA),$(SHARED))" )$(BIN)/confide reproduce --all --out docs/reproductions

docs: $(STAMP)           ## the site, into site/; needs no network
	$(BIN)/python docs/_site/rooms.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(STAMP)       ## the pictures of README and of the site's first page: docs/pictures
	$(BIN)/python docs/_site/pictures.py

bench: $(STAMP)          ## ratios, side by side in one run
	$(BIN)/confide bench

clean:
	rm -rf .venv .venv-pythons build dist demo demo-network site
