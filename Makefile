# `make demo` and `make test` need Python >= 3.11 and nothing else: each makes .venv and installs what it needs.
# `make help` lists all targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
PYTEST := $(BIN)/python -m pytest
PEERS  := .venv-peers
# Groups of tests start in the order of tests/conftest.py, longest first.
SPREAD := -n 2 --dist loadgroup --no-loadscope-reorder

# Tests and examples start hundreds of Python processes: each would compile the whole package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test quick durations lint doctest coverage docs site pictures frontend changelog peers programs clean

help:           ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.core  ## run the demonstration: a hospital file, a voter list, what links them, and what helps
	$(BIN)/sfumato demo

# A process of tests for each core: threads of one that wait for work give their core to the other.
test quick durations doctest coverage: export OMP_WAIT_POLICY := passive
test quick durations doctest coverage: export OPENBLAS_NUM_THREADS := 1

test:  ## run everything that a change must pass
	$(MAKE) --no-print-directory -j 2 $(VENV)/.all $(PEERS)/.installed programs docs doctest lint site
	SFUMATO_SKIPS=refused $(PYTEST) $(SPREAD)

quick: $(VENV)/.all  ## lint and the fast tests, for use while editing
	$(BIN)/ruff check -q .
	$(BIN)/ruff format --check -q .
	$(PYTEST) -q $(SPREAD) -m "not slow" -k "not spark"

durations: $(VENV)/.all $(PEERS)/.installed programs  ## run all tests and record how long each file takes
	SFUMATO_DURATIONS=1 $(PYTEST) -q $(SPREAD)

lint: $(VENV)/.all  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

doctest: $(VENV)/.all  ## run the examples in docstrings
	$(PYTEST) -q -n 2 --doctest-modules --ignore-glob='*/migrations/*' src

coverage: $(VENV)/.all $(PEERS)/.installed programs  ## all tests with coverage; fails below the floor in pyproject.toml
	$(PYTEST) $(SPREAD) --cov --cov-report=term --cov-report=html:site-coverage

docs: $(VENV)/.all  ## write what is generated: reference pages, JSON Schema, type stubs, tables of figures
	$(BIN)/python docs/manual.py
	$(BIN)/python benchmarks/tables.py

site: $(VENV)/.all docs  ## build the documentation as a website in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/.all  ## take the screenshots in docs/images (needs Chromium)
	$(BIN)/python docs/images/screenshots.py
	$(BIN)/python docs/images/app_screenshots.py
	$(BIN)/python docs/images/server_screenshots.py

# Node comes from a Python package. Only this target needs it: the built bundle is part of the repository.
frontend: $(VENV)/.all  ## build the pages of the app and the server from frontend/ into src/sfumato/web/static
	$(BIN)/python frontend/openapi.py
	cd frontend && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --no-audit --no-fund --silent
	cd frontend && PATH="$(CURDIR)/$(BIN):$$PATH" npm run types --silent && PATH="$(CURDIR)/$(BIN):$$PATH" npm run check --silent && PATH="$(CURDIR)/$(BIN):$$PATH" npm run build --silent

changelog: $(VENV)/.all  ## preview the release notes from changes/
	$(BIN)/towncrier build --draft --version next

# The peers that tests and benchmarks compare with pin other versions than ours, so they have an environment of their own.
peers: $(PEERS)/.installed

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.all: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[all,test]'
	@touch $@ $(VENV)/.core

# Chromium, JDBC drivers and the TypeScript compiler, for the tests of pages and clients.
programs: $(VENV)/.programs

$(VENV)/.programs: tests/programs.py frontend/package-lock.json | $(VENV)/.all
	$(BIN)/python tests/programs.py
	@touch $@

$(PEERS)/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --disable-pip-version-check install --quiet -r benchmarks/peers.txt
	@touch $@

clean:          ## remove everything that the other targets made
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis site site-coverage .coverage* dist
