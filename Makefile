# attndyn: `make demo` shows it, `make test` checks it, `make help` lists the rest.
#
#   make demo PYTHON=python3.12        another Python (3.11 or newer)
#   make demo PIP_ARGS="..."           more arguments for pip, e.g. an index with another torch build

PYTHON   ?= python3
VENV     ?= .venv
PIP_ARGS ?=
WORKERS  ?= 2

BIN  := $(VENV)/bin
CORE := $(VENV)/.installed-core
DEV  := $(VENV)/.installed-dev
RAY  := $(VENV)/.installed-ray

# The environment variables carry the pins into pip's isolated build environment (the second one for pip >= 25.3).
INSTALL = PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
          $(BIN)/python -m pip install -c constraints.txt $(PIP_ARGS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-all lint bench venv clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(CORE)  ## install, then run a small published experiment (about a minute on two CPU cores)
	$(BIN)/attndyn run copying --scale demo

test: lint  ## lint, then the fast tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
# OMP_NUM_THREADS=1: on 2 cores, two processes with torch's default threads trained a small LSTM 100 times slower.

test-slow: $(RAY)  ## the slow tests only (training at length, the page in a browser, a Ray cluster)
	$(BIN)/python -m pytest -m slow

test-all: test test-slow  ## lint and every test

lint: $(DEV)  ## ruff check, ruff format --check, mypy
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy

bench: $(CORE)  ## the benchmarks, each as a ratio to a named peer
	$(BIN)/attndyn bench

venv: $(DEV)  ## only install, with the development tools, into .venv

clean:  ## remove caches and build products (keeps .venv and runs)
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	"attndyn needs Python 3.11 or newer, and $(PYTHON) is %d.%d: name another one with PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) -e ".[dev]"
	@touch $(CORE) $@

$(RAY): $(DEV)
	$(INSTALL) -e ".[dev,ray]"
	@touch $@
