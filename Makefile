# Every command works from a fresh clone with make, a C compiler, and Python 3.11 or newer with its headers and venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run in parallel, so BLAS gets one thread.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto
READY := $(VENV)/.ready
# For `make fuzz` and `make sanitize`.
SECONDS ?= 600
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow fuzz kills sanitize lint format reference bench adapter-speed quality feedback exploration calibration studies clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/' | sort

demo: $(READY)  ## run the demonstration on the docstrings of your Python
	$(BIN)/aromatch demo

test: $(READY)  ## run the tests
	$(PYTEST)

test-slow: $(READY)  ## run the tests that take minutes
	$(PYTEST) -m slow

fuzz: $(READY)  ## mutate files and arguments for SECONDS (600) and store what fails
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

kills: $(READY)  ## kill processes that save, train and ask 1,000 times; takes minutes
	OMP_NUM_THREADS=1 AROMATCH_KILLS=1000 $(BIN)/pytest -q -s -n 0 -m slow tests/io/test_kills.py

sanitize: $(READY)  ## run the kernels under the sanitizers of gcc, on random input with SEED; takes minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.sanitize --seed $(SEED)

lint: $(READY)  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(READY)  ## write docs/reference.md from the docstrings
	$(BIN)/python docs/reference.py

bench: $(READY)  ## measure speed and memory against loops in NumPy and C
	$(BIN)/python -m benchmarks.speed

adapter-speed: $(READY)  ## measure search and feedback of the adapter against a plain scan
	$(BIN)/python -m benchmarks.speed.adapter

quality: $(READY)  ## measure the quality of rankings; takes hours and installs torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[quality]'
	$(BIN)/python -m benchmarks.quality

feedback: $(READY)  ## measure the effect of feedback on a search; takes hours
	$(BIN)/python -m benchmarks.feedback

exploration: $(READY)  ## measure exploration in a stream of searches with clicks
	$(BIN)/python -m benchmarks.exploration

calibration: $(READY)  ## measure the calibration of probabilities
	$(BIN)/python -m benchmarks.calibration

studies: $(READY)  ## run the six studies; takes hours and installs torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[quality]'
	$(BIN)/python -m benchmarks.studies

clean:  ## remove everything that the other commands created
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	rm -f src/aromatch/kernels/*.c src/aromatch/kernels/*.so

# The environment is rebuilt if the build configuration changes, the kernels if their source changes.
$(READY): pyproject.toml setup.py $(wildcard src/aromatch/kernels/*.pyx src/aromatch/kernels/*.pxd src/aromatch/kernels/*.h)
	@PYTHON="$(PYTHON)" sh .ci/check-machine
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
