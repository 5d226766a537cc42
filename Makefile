# Everything a person needs, each command from a fresh clone: make, a C compiler and Python 3.11 or newer
# with its headers and venv are all that is assumed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run side by side; threads of BLAS on small matrices would only fight for the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint format reference bench adapter-speed quality feedback exploration calibration studies clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/' | sort

demo: $(READY)  ## learn a similarity from the docstrings of your Python, and look at it
	$(BIN)/aromatch demo

test: $(READY)  ## run the tests
	$(PYTEST)

test-slow: $(READY)  ## run the tests that take minutes
	$(PYTEST) -m slow

lint: $(READY)  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## put the code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(READY)  ## write docs/reference.md from the docstrings
	$(BIN)/python docs/reference.py

bench: $(READY)  ## measure speed and memory against plain loops
	$(BIN)/python -m benchmarks.speed

adapter-speed: $(READY)  ## measure what a search and a judgement cost the more was judged, against a bare scan
	$(BIN)/python -m benchmarks.speed.adapter

quality: $(READY)  ## measure rankings against other ways to learn them; takes long, and installs torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[quality]'
	$(BIN)/python -m benchmarks.quality

feedback: $(READY)  ## measure whether search that learns from judgements gets better, and never worse; takes long
	$(BIN)/python -m benchmarks.feedback

exploration: $(READY)  ## measure whether exploring pays in a stream of searches with clicks
	$(BIN)/python -m benchmarks.exploration

calibration: $(READY)  ## measure whether probabilities come true
	$(BIN)/python -m benchmarks.calibration

studies: $(READY)  ## measure what learning from comparisons is good for, on six questions; takes long, and installs torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[quality]'
	$(BIN)/python -m benchmarks.studies

clean:  ## remove what the other commands made
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	rm -f src/aromatch/kernels/*.c src/aromatch/kernels/*.so

# The environment is made anew when the package's build changes, and kernels when their source does.
$(READY): pyproject.toml setup.py $(wildcard src/aromatch/kernels/*.pyx src/aromatch/kernels/*.pxd src/aromatch/kernels/*.h)
	@PYTHON="$(PYTHON)" sh .ci/check-machine
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
