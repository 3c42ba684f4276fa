# Everything one does here. Needs Python 3.11+ and make, nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KAFKA := $(VENV)/.kafka
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2

.PHONY: help run setup test test-fast test-services lint migrations format requirements chaos races fairness bench clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

run: $(READY) ## set up and run everything in the foreground; Ctrl-C stops it
	@exec $(BIN)/python manage.py run

setup: $(READY) ## the environment in .venv

$(READY): requirements.txt
	@scripts/check-python $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $(READY)

$(KAFKA): $(READY) requirements-kafka.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-kafka.txt
	@touch $(KAFKA)

test: $(READY) $(KAFKA) lint migrations ## everything that must hold: lint, migrations, the suite
	@scripts/install-system-packages
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-fast: $(READY) $(KAFKA) ## the suite without what takes seconds
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow"

test-services: $(READY) $(KAFKA) ## the suite on PostgreSQL, Redis and RabbitMQ of this machine
	$(BIN)/python scripts/test_services.py -n $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: $(READY) ## style, types, rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

migrations: $(READY) ## no model without its migration
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(READY) ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(READY) ## pin each requirements*.in into its .txt
	for name in requirements requirements-kafka; do \
		$(BIN)/pip-compile --quiet --strip-extras --no-header --no-emit-index-url \
			--no-emit-find-links --no-emit-trusted-host --output-file=$$name.txt $$name.in || exit 1; \
	done

chaos: $(READY) ## every fault on real processes, twelve minutes; CELL=worker,flush SIDE=late CHAOS_SEED=1
	$(BIN)/python -m tests.chaos $(if $(CELL),--cell $(CELL)) $(if $(SIDE),--side $(SIDE))

races: $(READY) $(KAFKA) ## a photo joins a gathering that is being finalized, a thousand times; three minutes
	RACES=1000 $(PYTEST) tests/photos/test_concurrency.py -k race

fairness: $(READY) ## whether a dead webhook endpoint delays the others; five minutes on a quiet machine
	FAIRNESS=1 $(PYTEST) -s -m "" tests/subscriptions/test_webhook_fairness.py

bench: $(READY) ## speed beside other queues; ONLY=throughput,publish SHORT=1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt \
		-r bench/requirements.txt
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short)

clean: ## remove the environment and caches; var/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
