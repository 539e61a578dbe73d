# Needs Python 3.10 or later and make; everything else goes into $(VENV).
#
#   make demo         the example project: four robots meet the site of the draft's section 4
#   make demo-fleet   the same project: four workers out of one Redis, one of them killed (needs redis-server)
#   make test         the whole suite; on every kind of reactor and without one what depends on that
#   make test-floor   the same without coverage and without the long tests, mostly on asyncio
#   make test-middle  a part of it, for the Pythons in between
#   make test-quick   the suite on the asyncio reactor alone, without the long tests
#   make test-ecosystem  real crawls beside other plugins; ecosystem-page writes docs/ecosystem.md from it
#   make lint         ruff, import-linter and mypy
#   make docs         the site of docs/, in build/docs; a warning is an error
#   make simulate     100,000 simulated histories; SEEDS=0-999: so many; SEED=42: one, told step by step
#   make bench        the benchmarks
#   make soak         a crawl that is killed and begun again: REQUESTS=1000000 SITES=20000
#   make mutants      the tests that are tested: PART=protocol or crawl, and MUTANTS='--sample 300'
#   make clean
#
# With other versions, each in a folder of its own:
#
#   make test PYTHON=python3.10 VENV=.venv-floor SCRAPY='scrapy==2.17.*'

PYTHON ?= python3
VENV ?= .venv
SCRAPY ?= scrapy
JOBS ?= 5
REQUESTS ?= 1000000
SITES ?= 20000

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PYTEST := $(BIN)/python -m pytest
# What has been installed, by the name of what was asked for.
WANTED := $(shell echo '$(SCRAPY)' | tr -c 'A-Za-z0-9.\n' '_')
PROJECT := $(VENV)/.project-$(WANTED)
TEST := $(VENV)/.test-$(WANTED)
ECOSYSTEM := $(VENV)/.ecosystem-$(WANTED)
LINT := $(VENV)/.lint-$(WANTED)
BENCH := $(VENV)/.bench-$(WANTED)
DOCS := $(VENV)/.docs-$(WANTED)
MUTMUT := $(VENV)/.mutants-$(WANTED)

CORE_FILES := scrapy_koster/protocol/*,scrapy_koster/checker/*
# Where make can, it does not mix the lines of what runs at the same time.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# The files of tests of these names, in whichever folder.
files = $(foreach name,$(1),$(wildcard tests/*/test_$(name).py))

# What is kept from one run to the next, by processes that are stopped and killed.
KEPT := $(call files,crawl_jobdir crawl_redis crawl_scrapy_redis)
# What waits for time-outs, delays and faults. Apart, because it takes as long as all other crawls.
SLOW := $(call files,crawl_deferring crawl_fleet crawl_freshness crawl_pacing crawl_waiting faults wire)
OTHERS := $(addprefix --ignore=,$(KEPT) $(SLOW))
# In test-reactor and test-reactorless: all, or those named; without those that look at what is
# said, counted and kept, which does not depend on the kind of loop.
LOOP_TESTS ?=
ONE_LOOP := $(addprefix --ignore=,$(call files,announcer crawl_announcer crawl_log \
	crawl_meta crawl_missing crawl_projects crawl_refused crawl_robot crawl_stored crawl_survey \
	example_project first_crawl recipes report_collect spidermiddleware)) $(addprefix --ignore=,$(KEPT))
MIDDLE_TESTS := $(call files,conformance robotstxt robotsmeta access freshness storage storage_sqlite \
	parking verdict crawl)

PAGE_TESTS := tests/report/test_report_page.py tests/audit/test_audit_page.py

CRAWLS := crawl and not long and not timed

# The longest first. Most of them wait more than they work: so many may run at a time.
RUNS := test-long-crawls test-units test-reactorless test-reactor test-asyncio test-slow test-kept test-long

.PHONY: demo demo-fleet test $(RUNS) test-timed test-floor floor-units floor-asyncio floor-slow floor-kept test-middle test-quick test-ecosystem ecosystem-page lint lint-rules lint-format lint-imports lint-types docs simulate bench mutants soak clean install

demo: $(PROJECT)
	cd example_project && $(abspath $(BIN))/python demo.py

demo-fleet: $(TEST)
	cd example_project && $(abspath $(BIN))/python demo_fleet.py

test: $(TEST)
	@$(BIN)/coverage erase
	@echo '$(words $(RUNS)) runs, $(JOBS) at a time; the output of each comes when it ends. Then one alone.'
	@failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(SYNC) $(RUNS) || failed=1; \
	$(MAKE) --no-print-directory test-timed || failed=1; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report || failed=1; \
	echo 'The core alone:'; \
	$(BIN)/coverage report --include='$(CORE_FILES)' --fail-under=100 || failed=1; \
	exit $$failed

# Without greenlets, to look after which takes twice the time. What a test runs in a process of its
# own is not measured: that would take as long again.
test-units: $(TEST)
	$(BIN)/coverage run --concurrency=thread -m pytest -m 'not crawl and not long and not timed'

test-asyncio: $(TEST)
	$(BIN)/coverage run -m pytest -m '$(CRAWLS)' $(OTHERS)

test-slow: $(TEST)
	$(BIN)/coverage run -m pytest -m '$(CRAWLS)' $(SLOW)

test-kept: $(TEST)
	$(BIN)/coverage run -m pytest -m '$(CRAWLS)' $(KEPT)

test-reactor: $(TEST)
	$(PYTEST) --reactor=default -m '$(CRAWLS)' $(ONE_LOOP) $(LOOP_TESTS)

test-reactorless: $(TEST)
	$(PYTEST) -p no:twisted -m '$(CRAWLS)' $(ONE_LOOP) $(LOOP_TESTS)

test-long: $(TEST)
	$(PYTEST) -m 'long and not timed' --ignore-glob='*/test_crawl_*.py' \
		$(addprefix --ignore=,$(PAGE_TESTS))
	$(PYTEST) -p no:twisted $(PAGE_TESTS)  # Playwright has a loop of its own

test-long-crawls: $(TEST)
	$(PYTEST) -m 'long and not timed' $(wildcard tests/crawls/test_crawl_*.py)

# By themselves, because they measure; coverage would take longer than what is measured.
test-timed: $(TEST)
	$(PYTEST) -m timed

# Without coverage, and on the other kinds of reactor the first of the crawl tests alone.
test-floor: $(TEST)
	@$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(SYNC) \
		LOOP_TESTS=tests/crawls/test_crawl.py \
		floor-units floor-slow floor-kept floor-asyncio test-reactor test-reactorless

floor-units: $(TEST)
	$(PYTEST) -m 'not crawl and not long and not timed'

floor-asyncio: $(TEST)
	$(PYTEST) -m '$(CRAWLS)' $(OTHERS)

floor-slow: $(TEST)
	$(PYTEST) -m '$(CRAWLS)' $(SLOW)

floor-kept: $(TEST)
	$(PYTEST) -m '$(CRAWLS)' $(KEPT)

# What depends on the Python more than on Scrapy, and the first of the crawl tests.
test-middle: $(TEST)
	$(PYTEST) $(MIDDLE_TESTS)

# A real crawl beside each plugin, and beside what Scrapy has.
test-ecosystem: $(ECOSYSTEM)
	$(PYTEST) tests/ecosystem

# The same, what the table has of other tests, and that of scrapyd where it is installed.
ecosystem-page: $(ECOSYSTEM)
	$(PYTEST) -m beside --write-page tests/ecosystem \
		tests/crawls/test_crawl_replay.py tests/crawls/test_crawl_scrapy_redis.py tests/project/test_scrapyd.py

test-quick: $(TEST)
	$(PYTEST) -m 'not long and not timed'

lint: lint-rules lint-format lint-imports lint-types

lint-rules: $(LINT)
	$(BIN)/ruff check

lint-format: $(LINT)
	$(BIN)/ruff format --check

lint-imports: $(LINT)
	$(BIN)/lint-imports

lint-types: $(LINT)
	$(BIN)/mypy

SEEDS ?= 0-99999
SIMULATED = $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

simulate: $(TEST)
	PYTHONPATH=tests $(BIN)/python -m simulation $(SIMULATED)

docs: $(DOCS)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env docs build/docs

bench: $(BENCH)
	$(BIN)/python benchmarks

soak: $(TEST)
	$(BIN)/python tests/soak.py --requests $(REQUESTS) --sites $(SITES)

PART ?= protocol
MUTANTS ?=

mutants: $(MUTMUT)
	$(BIN)/python tests/mutants.py $(PART) $(MUTANTS)

clean:
	rm -rf .venv .venv-* build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache \
		.hypothesis .scrapy mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(TEST) $(LINT)

$(PROJECT): pyproject.toml | $(BIN)/python
	$(PIP) --editable . '$(SCRAPY)'
	@touch $@

$(TEST): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[test]' '$(SCRAPY)'
	@touch $@

# scrapy-rotating-proxies asks for the old package `typing`, which stands before Python's own module
# where sys.path is passed on to another process, as `scrapy bench` does.
$(ECOSYSTEM): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[ecosystem,test]' '$(SCRAPY)'
	$(BIN)/python -m pip uninstall --quiet --yes typing
	@touch $@

$(LINT): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[lint,test]' '$(SCRAPY)'
	@touch $@

$(DOCS): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[docs]' '$(SCRAPY)'
	@touch $@

$(BENCH): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[bench,test]' '$(SCRAPY)'
	@touch $@

$(MUTMUT): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[mutants,test]' '$(SCRAPY)'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo '$(PYTHON) is not Python 3.10 or later: make ... PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo '$(PYTHON) cannot make virtual environments.'; \
		  echo 'On Debian and Ubuntu: apt-get install python3-venv'; exit 1; }
	$(PYTHON) -m venv $(VENV)
