# Two commands matter: make demo and make test. Both do the set-up they need.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.setup-done
NODE_STAMP := $(VENV)/node/.setup-done
# Tests at once: as many as the smallest machine that runs them has processors. What stops one of them stops all.
JOBS ?= 2

.PHONY: setup node demo test lint types contracts wheel-test check clean

$(STAMP): pyproject.toml constraints.txt
	@echo "teller: setting up $(VENV). This installs numpy, numba, torch and transformers once. torch is large: README.md says how to get its CPU build."
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,dev]'
	@touch $(STAMP)

setup: $(STAMP)

# The conformance suite and the Inspector of MCP, which tests/mcp runs where they are there.
$(NODE_STAMP): tests/node/package.json tests/node/package-lock.json $(STAMP)
	$(VENV)/bin/python tests/node/packages.py
	@touch $(NODE_STAMP)

node: $(NODE_STAMP)

demo: setup
	$(VENV)/bin/teller demo $(ARGS)

test: setup
	$(VENV)/bin/python -m pytest -n $(JOBS) --dist worksteal --max-worker-restart 0 $(ARGS)

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: setup
	$(VENV)/bin/pyright

contracts: setup
	$(VENV)/bin/lint-imports

wheel-test: setup
	$(VENV)/bin/python tests/wheel_check.py

check: node test lint types contracts wheel-test

clean:
	rm -rf $(VENV) dist build
