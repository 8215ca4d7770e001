# Every command sets itself up from the lock files. They need Python 3.11 or later with venv, and nothing installed before.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The lock is complete but for locks/requirements-excludes.txt, and only what is imported is compiled (scripts/warm.py).
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install --no-compile --no-deps
UV_COMPILE := $(BIN)/uv pip compile -q --excludes locks/requirements-excludes.txt --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
# Bytecode is written, whatever the shell says: rewriting the asserts of all files takes each process 16 s of CPU.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
# tests/support/tiers.py says which test is `fast`, and that none of these starts a process: they wait for nothing, so two
# processes are enough. Of the others many wait.
FAST := $(PYTEST) -n 2 -m fast
ALL := $(PYTEST) -n 4
EVALUATORS := tests/unit/evaluators tests/unit/dialects
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
RELEASE := .cache/release/.made

.PHONY: help install run demo test test-all groups test-evaluators test-collector check chart pictures docs bench soak fuzz release lock clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(RUNTIME) ## .venv from the lock file; the command is then .venv/bin/spanwise

run: $(RUNTIME) ## the service, data in ./spanwise-data
	$(BIN)/spanwise run

demo: $(RUNTIME) ## the service and a scripted agent that gets worse and is fixed
	$(BIN)/spanwise demo

test: $(DEV) ## unit, property, golden and conformance tests from the lock file alone, in minutes: no process, broker or tool
	$(FAST) tests/unit tests/property tests/golden tests/conformance

test-all: $(DEV) ## all other tests: real processes, Kafka, browsers, the chart, tools; .ci/run installs what they need
	SPANWISE_TEST_ONLY_DUE=1 $(ALL) -m "not (fast or slow)"

groups: $(DEV) ## costly tests whose files have changed since they passed: test-all runs them until this has recorded that they pass
	$(BIN)/python -m tests.support.guarded

test-evaluators: $(DEV) ## of `make test`, what a change of evaluators/ can break: its unit tests and the golden vectors
	$(FAST) $(EVALUATORS) tests/golden

test-collector: $(DEV) ## of `make test`, what a change of collector/ can break
	$(FAST) tests/unit tests/property tests/conformance $(addprefix --ignore=,$(EVALUATORS))

check: $(DEV) ## ruff, pyright (strict), import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

chart: $(DEV) ## what the Helm chart renders, and what of it was checked
	$(BIN)/python -m tests.chart

pictures: $(DEV) ## every page, light and dark, wide and narrow, into .cache/pictures
	$(BIN)/python -m scripts.pictures .cache/pictures

docs: $(DEV) ## the site of docs/, below build/site; nothing is fetched, a broken link is an error
	$(BIN)/python -m scripts.site

bench: $(DEV) ## the table of ratios, interleaved with a transport-only server
	$(BIN)/python -m tests.bench

soak: $(DEV) groups ## the long forms: 200 kills, a long outage, ten minutes of trouble on Kafka, all examples of the properties
	SPANWISE_ALL_EXAMPLES=1 $(ALL) -m "not slow" tests/property $$(grep -rl --include="test_*.py" support.examples tests/unit tests/conformance)
	$(BIN)/python -m pytest -m slow -s

fuzz: $(DEV) ## the fuzzers of tests/fuzz for an hour, each its share; FUZZ_SECONDS=60 for a minute
	FUZZ_SECONDS=$${FUZZ_SECONDS:-3600} $(BIN)/python -m pytest tests/fuzz

release: $(DEV) $(RELEASE) ## wheel, sdist, chart, SBOM and checksums of HEAD, in build/release; IMAGE=--image for the image too
	.cache/release/bin/python -m scripts.release build/release $(IMAGE)

lock: $(DEV) ## new lock files
	$(UV_COMPILE) --extra install pyproject.toml -o locks/requirements.lock
	$(UV_COMPILE) --extra install --extra dev --extra docs -c locks/requirements.lock pyproject.toml -o locks/requirements-dev.lock
	$(UV_COMPILE) --group image -o locks/requirements-image.lock
	$(UV_COMPILE) --group release -o locks/requirements-release.lock
	printf 'boto3>=1.43.1\n' | $(subst locks/requirements-excludes.txt,/dev/null,$(UV_COMPILE)) -c locks/requirements.lock - -o locks/requirements-bedrock.lock

clean: ## what the commands above made, your data apart
	rm -rf $(VENV) .cache build *.egg-info .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Spanwise needs Python 3.11 or later, $(PYTHON) is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): locks/requirements.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) --require-hashes -r locks/requirements.lock
	$(PIP) --no-build-isolation -e .
	$(BIN)/python -m scripts.warm
	@touch $@

$(RELEASE): locks/requirements-release.lock | $(VENV)/bin/python
	$(PYTHON) -m venv .cache/release
	.cache/release/bin/python -m pip --disable-pip-version-check -q install --no-compile --no-deps --require-hashes -r $<
	@touch $@

# The lock of development holds all of the other one. uv, which is in it, takes 4 seconds where pip takes 45; pip knows of
# registries that uv was not told of.
$(DEV): locks/requirements-dev.lock locks/requirements.lock pyproject.toml | $(VENV)/bin/python
	@awk '/^uv==/ {found = 1} found {print} found && !/\\$$/ {exit}' $< > $(VENV)/uv.lock
	$(PIP) --require-hashes -r $(VENV)/uv.lock
	$(BIN)/uv pip install -q --system-certs --python $(BIN)/python --no-deps --require-hashes -r $< || $(PIP) --require-hashes -r $<
	$(PIP) --no-build-isolation -e .
	$(BIN)/python -m scripts.warm
	@touch $(RUNTIME) $@
