# What a person types. Every target does its own set-up: Python 3.11 or newer is all it needs.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint fmt generate test-slow bench-balance bench-read bench-apply bench-placement compare-peers clean

help:  ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 18

$(READY): pyproject.toml
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)  ## Watch specs become topics on a real 6-broker Kafka, then clean up.
	@$(BIN)/python docs/demo.py

test: lint  ## Check the code and run every test that is not slow, on real brokers.
	@$(BIN)/pytest -m "not slow"

test-slow: $(READY)  ## Run the slow tests: faults, and every Kafka release line.
	@$(BIN)/pytest -m slow

lint: $(READY)  ## Style, types, import contracts, generated files.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python schemas/generate.py --check

fmt: $(READY)  ## Format the code.
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

generate: $(READY)  ## Write what is made from the code: schemas/ and docs/rules.md.
	@$(BIN)/python schemas/generate.py

bench-balance: $(READY)  ## Balance after growth: Kafka's placement beside ours.
	@$(BIN)/python benchmarks/balance.py

bench-read: $(READY)  ## An empty plan of 1,000 and 5,000 topics beside the smallest script.
	@$(BIN)/python benchmarks/read.py

bench-apply: $(READY)  ## Creating 1,000 and 5,000 topics beside the smallest script.
	@$(BIN)/python benchmarks/apply.py

bench-placement: $(READY)  ## Placement beside striping and Kafka's own class: quality and CPU.
	@$(BIN)/python benchmarks/placement.py

compare-peers: $(READY)  ## Ten edits by reconciler and by the other tools that are installed.
	@$(BIN)/python benchmarks/peers/compare.py --record build/peers.json $(if $(TABLE),--table $(TABLE))

clean:  ## Take away what these targets made here.
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
