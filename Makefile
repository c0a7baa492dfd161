# `make demo` and `make test` need nothing prepared but Python >= 3.11 and `make`.
PYTHON ?= python3
EXTRAS ?= dev
VENV := .venv
BIN := $(VENV)/bin
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.PHONY: demo test verify bench measure

demo: $(VENV)/.installed
	$(BIN)/specsim run

test: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

verify: $(STAMP)
	$(BIN)/python -m pytest -m "not benchmark" --hypothesis-profile=thorough

bench: $(STAMP)
	$(BIN)/python -m pytest -m benchmark -s tests/benchmarks

# Needs torch: make measure EXTRAS=dev,models MODEL=path/to/SmolLM2-135M-Instruct.Q4_1.gguf
measure: $(STAMP)
	$(BIN)/python -m calibrate.cpu_proof $(MODEL)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp older than the metadata or the constraints installs again.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@ $(VENV)/.installed
