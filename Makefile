# Two commands: `make demo` and `make test`. Each makes .venv and installs what it needs; nothing but Python >= 3.11 is assumed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
PEERS  := .venv-peers

.PHONY: demo test lint docs peers clean

demo: $(VENV)/.core
	$(BIN)/sfumato demo

test: $(VENV)/.all $(PEERS)/.installed docs lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Reference pages, the recipe's JSON Schema and the type stubs of packages are made from the parts that are registered.
docs: $(VENV)/.all
	$(BIN)/sfumato methods --write docs
	$(BIN)/python -m sfumato.manual

# The peers that tests and benchmarks compare with pin other versions than ours, so they live apart.
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

$(PEERS)/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --disable-pip-version-check install --quiet -r benchmarks/peers.txt
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis site dist
