# Two commands are all a clone needs: `make demo` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FETCHED := $(VENV)/.fetched
DOCS_READY := $(VENV)/.docs-ready
OLDER_SPARK := build/spark-4.0.0
# Compiling every module of every package takes a third of the time; what is imported is compiled then.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile

# Many tests start kops as a process: without bytecode each would compile kops again, which takes as long as all else that it does.
unexport PYTHONDONTWRITEBYTECODE

# The checks run beside each other, the lines of each together: none of them keeps two cores busy.
# In `make test` they run one after the other, in what the lanes on real parts leave: those take longest.
AT_ONCE := --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# The unit tests of one noun: make check NOUN=offsets
OF_NOUN = $(or $(shell find tests/unit -path '*$(NOUN)*' -name 'test_*.py'),$(error no unit test has '$(NOUN)' in its path))

.PHONY: help setup jars spark packages demo test test-long test-older-spark check real style types layers unit format lock benchmarks docs man clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup: $(FETCHED) jars ## Install kops and what is tested with it into .venv, and fetch the jars

$(FETCHED): $(READY)
	$(BIN)/kops doctor --fetch
	@touch $@

$(READY): requirements.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "kops needs Python 3.10 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@$(MAKE) $(AT_ONCE) --jobs=2 spark packages
	$(PIP) --no-build-isolation --editable .
	@touch $@

# The editable install builds them too; this is for when their sources change, which only their digest shows.
jars: $(READY)
	@$(BIN)/python java/agent_jar.py

# Half of the time of all packages goes into PySpark, which is built here, on one core: half of that into compressing its jars once more.
# In an environment of its own (PEP 517): pip would take .venv's setuptools, which is replaced beside it, once it sees wheel there.
PIP_SPARK := $(PIP) --use-pep517 --config-settings=--build-option=--compression=stored

spark:
	grep '^pyspark=' requirements.lock | $(PIP_SPARK) --requirement /dev/stdin

# The oldest that kops works with: on PYTHONPATH it goes before that of .venv.
$(OLDER_SPARK): $(READY)
	@rm -rf $@ $@.part
	$(PIP_SPARK) --target $@.part pyspark==4.0.0
	@mv $@.part $@

packages:
	grep -v '^pyspark=' requirements.lock | $(PIP) --requirement /dev/stdin

demo: setup ## Break and rebuild an application's state on a real Kafka
	$(BIN)/kops demo

test: jars ## Run every check, on real parts
	@KOPS_TEST_LANES=1 nice -n 5 $(MAKE) $(AT_ONCE) --jobs=1 types unit style layers & checks=$$!; \
	$(MAKE) --no-print-directory real; real=$$?; \
	wait $$checks || { echo 'failed: types, unit, style or layers, see above'; exit 1; }; exit $$real

test-long: $(if $(ONLY),jars) ## Run every check with its long variants (hours; ONLY=1: without what `make test` runs; PART=1/4: a fourth of it)
	@PYTEST_TIMEOUT=14400 KOPS_TEST_LONG=$(if $(ONLY),only,1) KOPS_TEST_PART=$(PART) $(MAKE) --no-print-directory $(if $(ONLY),real,test)
	$(if $(filter-out 1/%,$(PART)),,for version in 4.3.1 3.9.1 3.6.2; do KOPS_TEST_KAFKA_VERSION=$$version $(BIN)/python -m pytest tests/broker || exit 1; done)
	$(if $(filter-out 2/%,$(PART)),,$(MAKE) --no-print-directory test-older-spark)

test-older-spark: $(OLDER_SPARK) ## Run the tests of Spark on the oldest that kops works with
	PYTHONPATH=$(CURDIR)/$(OLDER_SPARK) $(BIN)/python -m pytest tests/spark tests/streams/test_own_code_verbs.py tests/streams/test_state_recovery.py

check: $(READY) ## Run the fast half: lint, types, layers, unit tests (NOUN=offsets: those of one noun)
	@KOPS_TEST_QUICK=1 KOPS_TEST_LANES=3 $(MAKE) $(AT_ONCE) --jobs=2 types unit style layers

real:
	$(BIN)/python tests/fetch.py $(BIN)/python tests/run_in_lanes.py

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

unit:
	$(if $(NOUN),$(BIN)/python -m pytest --quiet $(OF_NOUN),$(BIN)/python tests/run_in_lanes.py tests/unit)

format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## Pin the newest versions that fit together
	uv pip compile --universal --python-version 3.10 --no-header --all-extras --constraint constraints.txt --output-file requirements.lock pyproject.toml
	uv pip compile --universal --python-version 3.10 --no-header --constraint requirements.lock --output-file docs/requirements.lock docs/requirements.in

benchmarks: setup ## Measure kops beside its peers
	for each in rebuild own_code own_code_task own_code_rows state groups records replay connect start administration reassignment; do $(BIN)/python tests/benchmarks/$$each.py || exit 1; done

docs: $(DOCS_READY) ## Build the documentation as a site in build/docs; broken links are errors
	$(BIN)/python docs/architecture.py
	$(BIN)/python docs/from_apache.py
	$(BIN)/python docs/rights.py
	$(BIN)/python docs/site.py build/site-source
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'open build/docs/index.html'

man: $(READY) ## Write the man pages into build/man, from where a wheel takes them
	$(BIN)/python docs/reference.py man build/man

$(DOCS_READY): $(READY) docs/requirements.lock
	$(PIP) --requirement docs/requirements.lock
	@touch $@

clean: ## Remove what was built here; the cache of jars stays
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
