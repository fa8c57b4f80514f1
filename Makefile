# Two commands are all a clone needs: `make demo` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test check unit format lock benchmarks clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 14

setup: $(READY) ## Install kops and what is tested with it into .venv, and fetch the jars

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "kops needs Python 3.10 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/kops doctor --fetch
	@touch $@

demo: setup ## Break and rebuild an application's state on a real Kafka
	$(BIN)/kops demo

test: check ## Run every check, on real parts
	$(BIN)/python tests/run_on_real_parts.py

check: setup ## Run the fast half: lint, types, layers, unit tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/unit

format: setup ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## Pin the newest versions that fit together
	uv pip compile --universal --python-version 3.10 --no-header --all-extras --constraint constraints.txt --output-file requirements.lock pyproject.toml

benchmarks: setup ## Measure kops beside its peers
	for each in rebuild state groups records replay start; do $(BIN)/python tests/benchmarks/$$each.py || exit 1; done

clean: ## Remove what was built here; the cache of jars stays
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
