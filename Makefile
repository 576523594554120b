# Two commands do all set-up: `make demo` and `make test`. The environment is kept in .venv.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test test-fast check bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,check]"
	touch $(STAMP)

demo: $(STAMP)           ## the main job on generated data
	$(BIN)/confide demo

test: $(STAMP)           ## everything
	$(BIN)/pytest -n auto

test-fast: $(STAMP)      ## under five minutes, for daily work
	$(BIN)/pytest -n auto -m "not slow"

check: $(STAMP)          ## lint and types
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy

bench: $(STAMP)          ## ratios, side by side in one run
	$(BIN)/confide bench

clean:
	rm -rf .venv build dist demo
