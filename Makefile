# All commands of the project. They need Python 3.11+ and make, nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KAFKA := $(VENV)/.kafka
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2

.PHONY: help run setup test test-fast test-services lint migrations format requirements chaos races planted-bugs fairness bench bench-against clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

run: $(READY) ## set up and run everything in the foreground; Ctrl-C stops it
	@exec $(BIN)/python manage.py run

setup: $(READY) ## install all packages in .venv

$(READY): requirements.txt
	@scripts/check-python $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $(READY)

$(KAFKA): $(READY) requirements-kafka.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-kafka.txt
	@touch $(KAFKA)

test: $(READY) $(KAFKA) lint migrations ## lint, check the migrations, run all tests
	@scripts/install-system-packages
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-fast: $(READY) $(KAFKA) ## run the tests without the slow ones
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow"

test-services: $(READY) $(KAFKA) ## run the tests on PostgreSQL, Redis and RabbitMQ of this machine
	$(BIN)/python scripts/test_services.py -n $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: $(READY) ## check style, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

migrations: $(READY) ## check that each model has its migration
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(READY) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(READY) ## pin each requirements*.in in its .txt
	for name in requirements requirements-kafka; do \
		$(BIN)/pip-compile --quiet --strip-extras --no-header --no-emit-index-url \
			--no-emit-find-links --no-emit-trusted-host --output-file=$$name.txt $$name.in || exit 1; \
	done

chaos: $(READY) ## test every fault on real processes, fifteen minutes; CELL=worker,flush SIDE=late CHAOS_SEED=1
	$(BIN)/python -m tests.chaos $(if $(CELL),--cell $(CELL)) $(if $(SIDE),--side $(SIDE))

races: $(READY) $(KAFKA) ## add a photo to a gathering that is being finalized, a thousand times; three minutes
	RACES=1000 $(PYTEST) tests/photos/clustering/test_concurrency.py -k race

planted-bugs: $(READY) $(KAFKA) ## plant each known bug in a copy, and test that a test finds it; five minutes
	PLANTED_BUGS=all $(PYTEST) -m "" tests/properties/test_planted_bugs.py

fairness: $(READY) ## test whether a dead webhook endpoint delays the others; five minutes on an idle machine
	FAIRNESS=1 $(PYTEST) -s -m "" tests/subscriptions/channels/webhook/test_fairness.py

bench: $(READY) ## compare the speed with other queues; ONLY=throughput,publish SHORT=1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt \
		-r bench/requirements.txt
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short)

bench-against: $(READY) ## compare the speed with another revision of this repository; REV=HEAD~20 ROUNDS=20
	$(BIN)/python -m bench.against $(REV) $(if $(ROUNDS),--rounds $(ROUNDS))

clean: ## remove the environment and caches; var/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
