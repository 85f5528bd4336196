# Each target sets up what it needs in .venv: Python 3.11+ with venv and make are enough.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
DEV := $(VENV)/.dev

.PHONY: demo test lint test-all bench bench-peers dashboards integration pictures clean docs wheels

demo: $(READY)  ## run the main job on the bundled turns and say where the report lies
	$(VENV)/bin/turncap demo --out build/demo

test: $(DEV)  ## the quick tests: no network, no browser, no Go
	$(PY) -m pytest

lint: $(DEV)  ## ruff, and mypy strict over code and tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test-all: $(DEV)  ## lint, test and every heavier stage, each with its own time limit
	$(PY) tools/stages.py

bench: $(DEV)  ## measure, in one run, what docs/bench says
	$(PY) -m tools.bench

bench-peers: $(DEV)  ## six packages from PyPI beside turncap on the same turns: docs/bench/peers.md
	$(PY) -m tools.bench.peers

wheels: $(DEV)  ## dist/: the source archive, the wheel of pure Python, and this platform's with the guard compiled
	$(PY) -m build
	HATCH_BUILD_HOOK_ENABLE_MYPYC=true $(PY) -m build

dashboards: $(DEV)  ## write the generated files of dashboards/ anew
	$(PY) -m tools.dashboards

docs: $(DEV)  ## write the generated tables of README.md and docs/ anew
	$(PY) -m tools.registry_table --write
	$(PY) -m tools.quarter_table --write

integration: $(DEV)  ## a real Collector and Prometheus (built from Go modules once, then cached) and what runs on them
	$(PY) -m tools.integration --build-minutes $(or $(BUILD_MINUTES),60)

pictures: $(DEV)  ## draw the dashboards with real data: build/pictures/*.png
	$(PY) -m tools.pictures

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turncap needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --upgrade 'pip>=25.1'

$(READY): pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install -q -e '.[fast,otlp,analytics]'
	@touch $@

$(DEV): pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install -q -e '.[fast,otlp,analytics]' --group dev
	@touch $(READY) $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
