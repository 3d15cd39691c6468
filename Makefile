# What a person types. Every target does its own set-up: Python 3.11 or newer is all it needs.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest -m "not slow and not workflows"
TOOLS := $(abspath $(VENV))/tools
GO_TOOLS := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 github.com/nektos/act@v0.2.89
NODE_TOOLS := gitlab-ci-local@4.61.1

# Needed for pipefail: pip's exit code counts, not that of what shows its progress.
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help demo demo-fleet test test-unit test-laws test-kafka test-fleet lint fmt generate dangers test-slow test-workflows bench-balance bench-estate \
	bench-read bench-apply bench-placement bench-fleet campaign campaign-lake compare-peers clean

help:  ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 18

# On a terminal, a line that says what pip is at; elsewhere all that pip says.
define install
@echo "setting up $(VENV) with '.[$(1)]' …"
@$(PYTHON) -m venv $(VENV)
@set -o pipefail; \
	PYTHONUNBUFFERED=1 $(BIN)/pip install --disable-pip-version-check --progress-bar off --editable '.[$(1)]' \
	| if [ -t 1 ]; then while IFS= read -r line; do printf '\r\033[K%.70s' "$$line"; done; printf '\r\033[K'; else cat; fi
@touch $@
endef

$(READY): pyproject.toml
	$(call install,dev)

$(VENV)/.with-%: pyproject.toml
	$(call install,$*)

# What developers have includes every extra; without it, only these extras are installed.
needs = $(if $(wildcard $(READY)),$(READY),$(1:%=$(VENV)/.with-%))

demo: $(call needs,sandbox)  ## Watch specs become topics on a real 6-broker Kafka, then clean up.
	@$(BIN)/python docs/demo.py

demo-fleet: $(call needs,sandbox fleet)  ## Watch three real clusters collected, planned and mended, on Spark.
	@$(BIN)/python docs/demo_fleet.py

test: lint test-unit test-laws test-kafka test-fleet  ## Check the code, and run every test that is not slow.

test-unit: $(READY)  ## Run the tests that need neither brokers nor Spark, on every core.
	@$(PYTEST) --part unit -n auto

test-laws: $(READY)  ## Run the laws that hold for whatever Hypothesis invents, on every core.
	@$(PYTEST) --part laws -n auto

test-kafka: $(READY)  ## Run the tests on real brokers.
	@$(PYTEST) --part kafka

test-fleet: $(READY)  ## Run the tests on Spark.
	@$(PYTEST) --part fleet

test-slow: $(READY)  ## Run the slow tests: faults, and every Kafka release line.
	@$(BIN)/pytest -m slow

test-workflows: $(TOOLS)/.ready  ## Run the workflows of GitHub and GitLab on a real cluster.
	@PATH="$(TOOLS)/bin:$(TOOLS)/node_modules/.bin:$$PATH" $(BIN)/pytest -m workflows

$(TOOLS)/.ready: Makefile $(READY)
	@echo "setting up $(TOOLS); tests whose tools cannot be had are skipped by name …"
	@mkdir -p $(TOOLS)
	@for tool in $(GO_TOOLS); do GOBIN=$(TOOLS)/bin go install $$tool || true; done
	@npm install --silent --prefix $(TOOLS) $(NODE_TOOLS) || true
	@touch $@

lint: $(READY)  ## Style, types, import contracts, workflows, generated files.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/zizmor --offline --quiet .github
	@$(BIN)/python schemas/generate.py --check

fmt: $(READY)  ## Format the code.
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

generate: $(READY)  ## Write what is made from the code: schemas/, docs/rules.md, docs/lake.md.
	@$(BIN)/python schemas/generate.py

dangers: $(READY)  ## Act out every danger on real brokers, and write docs/dangers.md.
	@PYTHONPATH=tests:tests/contract:tests/e2e $(BIN)/python -m dangers

campaign-lake: $(READY)  ## Jobs on one lake at once, half of them killed; ROUNDS=30 SEED=1.
	@PYTHONPATH=tests/fleet $(BIN)/python -m lake_campaign --rounds $(or $(ROUNDS),30) --seed $(or $(SEED),1)

bench-balance: $(READY)  ## Balance after growth: Kafka's placement beside ours.
	@$(BIN)/python benchmarks/balance.py

bench-estate: $(READY)  ## Loading an estate of 50 to 400 clusters.
	@$(BIN)/python benchmarks/estate.py

bench-read: $(READY)  ## An empty plan of 1,000 and 5,000 topics beside the smallest script.
	@$(BIN)/python benchmarks/read.py

bench-apply: $(READY)  ## Creating 1,000 and 5,000 topics beside the smallest script.
	@$(BIN)/python benchmarks/apply.py

bench-placement: $(READY)  ## Placement beside striping and Kafka's own class: quality and CPU.
	@$(BIN)/python benchmarks/placement.py

bench-fleet: $(READY)  ## Simulate, plan and audit fleets of 1, 3 and 7 million partitions.
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python benchmarks/fleet.py $(MILLIONS)

campaign: $(READY)  ## Break things while apply works, for MINUTES=n with SEED=s, and judge what it says.
	@PYTHONPATH=tests $(BIN)/python -m campaign --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) \
		$(if $(LANES),--lanes $(LANES))

compare-peers: $(READY)  ## Ten edits by reconciler and by the other tools that are installed.
	@$(BIN)/python benchmarks/peers/compare.py --record build/peers.json $(if $(TABLE),--table $(TABLE))

clean:  ## Take away what these targets made here.
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
