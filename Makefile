# Needs Python 3.10 or later and make; everything else goes into $(VENV).
#
#   make demo         the example project: four robots meet the site of the draft's section 4
#   make demo-fleet   the same project: four workers out of one Redis, one of them killed
#   make test         every promise once, on the asyncio reactor: all units, crawls and faults
#   make test-rest    the other kinds of loop, many examples, long and timed tests, coverage
#   make test-all     make test and make test-rest
#   make test-quick   units only
#   make test-redis   what uses a Redis: with the redis-server of this machine, if it has one
#   make test-floor   what depends on Python and Scrapy, and the first of the crawl tests on the other kinds of loop
#   make test-lowest  the same with the lowest versions of the direct dependencies
#   make test-middle  what depends on the Python, for those in between
#   make test-ecosystem  real crawls beside other plugins; ecosystem-page writes docs/ecosystem.md from it
#   make test-servers  logs that nginx, Apache, Squid and others write, and an archive in pywb: of what is installed
#   make test-scrapy  Scrapy's own tests, with the add-on in Scrapy's default settings
#   make lint         ruff, import-linter, mypy, and zizmor for the workflows
#   make docs         the site of docs/, in build/docs; a warning is an error
#   make simulate     100,000 simulated histories; SEEDS=0-999: so many; SEED=42: one, told step by step
#   make random-crawl real crawls drawn from seeds: 200 of the day; SEEDS=0-99: so many; SEED=42: one, told step by step
#   make bench        the benchmarks
#   make clean
#
# With other versions, each in a folder of its own:
#
#   make test PYTHON=python3.10 VENV=.venv-floor SCRAPY='scrapy==2.14.*'

PYTHON ?= python3
VENV ?= .venv
SCRAPY ?= scrapy
JOBS ?= 5
WORKERS ?= 3

# Each test that starts a Python would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# With every extra of the package. An older pip does not know dependency groups.
GROUPED := $(PIP) --upgrade 'pip>=25.1' && $(PIP) --editable '.[archive,redis,tools]'
PYTEST := $(BIN)/python -m pytest
# What has been installed, by the name of what was asked for.
WANTED := $(shell echo '$(SCRAPY)' | tr -c 'A-Za-z0-9.\n' '_')
PROJECT := $(VENV)/.project-$(WANTED)
TEST := $(VENV)/.test-$(WANTED)
BROWSER := $(VENV)/.browser-$(WANTED)
ECOSYSTEM := $(VENV)/.ecosystem-$(WANTED)
LINT := $(VENV)/.lint-$(WANTED)
BENCH := $(VENV)/.bench-$(WANTED)
DOCS := $(VENV)/.docs-$(WANTED)

CORE_FILES := scrapy_koster/protocol/*,scrapy_koster/checker/*
# Where make can, it does not mix the lines of what runs at the same time.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# One more than a small machine has cores: some tests wait for a process.
PARALLEL := --numprocesses=$(WORKERS) --dist=worksteal
SHORT := not long and not timed
UNITS := tests/audit tests/checker tests/crawl tests/protocol tests/report tests/storage
# Some of what depends on the Python, and the first of the crawl tests.
MIDDLE := tests/protocol/test_conformance.py tests/storage tests/crawls/test_crawl.py
# In test-reactor and test-reactorless: those, or all crawls that can differ by loop.
LOOP_TESTS ?=
# What cannot: settings, texts, what an answer means, and crawls in processes with a reactor of their own.
ONE_LOOP := $(addprefix --ignore=tests/,$(addsuffix .py,crawl/test_addon crawl/test_config \
	crawl/test_spidermiddleware project/test_readme project/test_recipes crawls/test_first_crawl \
	crawls/test_wire $(addprefix crawls/test_crawl_,access html log missing parsers robot \
	scrapy_redis stored ways_past)))
# Twisted's own reactor has the HTTP client and the timers of the asyncio reactor.
OF_THE_REACTOR := $(addprefix tests/crawls/test_crawl,.py _connections.py _start.py _waiting.py)

SERVERS := tests/ecosystem/test_logs_of_servers.py tests/ecosystem/test_pywb.py

# The longest first. Most of them wait more than they work: so many may run at a time.
RUNS := test-reactorless-first test-reactorless-second test-covered-units test-long test-many \
	test-reactor test-browser

.PHONY: demo demo-fleet test test-rest test-all test-covered test-long-crawls $(RUNS) test-reactorless test-timed test-redis test-floor test-lowest test-middle test-quick test-scrapy test-ecosystem test-servers ecosystem-page lint lint-rules lint-format lint-imports lint-types lint-workflows docs simulate random-crawl bench clean install

demo: $(PROJECT)
	cd example_project && $(abspath $(BIN))/python demo.py

# The server of the machine, or the one that the test extra brings.
demo-fleet: $(TEST)
	server=$$(PYTHONPATH=tests $(BIN)/python -m harness.redis_server) && cd example_project && \
		KOSTER_REDIS_SERVER=$$server $(abspath $(BIN))/python demo_fleet.py

test: $(TEST)
	$(PYTEST) $(PARALLEL) -m '$(SHORT)'

test-quick: $(TEST)
	$(PYTEST) --numprocesses=2 --dist=worksteal -m '$(SHORT) and not crawl and not slow' $(UNITS)

test-all:
	@failed=0; \
	$(MAKE) --no-print-directory test || failed=1; \
	$(MAKE) --no-print-directory test-rest || failed=1; \
	exit $$failed

test-rest: $(TEST) $(BROWSER)
	@failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 $(SYNC) test-long-crawls test-covered || failed=1; \
	$(MAKE) --no-print-directory test-timed || failed=1; \
	exit $$failed

test-covered: $(TEST) $(BROWSER)
	@$(BIN)/coverage erase
	@echo '$(words $(RUNS)) runs, $(JOBS) at a time; the output of each comes when it ends.'
	@failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(SYNC) $(RUNS) || failed=1; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report || failed=1; \
	echo 'The core alone:'; \
	$(BIN)/coverage report --include='$(CORE_FILES)' --fail-under=100 || failed=1; \
	exit $$failed

# Coverage is measured where no reactor runs in a greenlet, to look after which takes twice the time.
# What a test runs in a process of its own is not measured: that would take as long again.
# Tests of texts and of the tests have no lines of the package to themselves, nor has the simulation
# and what is of crawls and no crawl: `make test` runs them. Each case of the conformance file is read
# once here, and examples that are made up reach no other line than those that are written down.
UNCOVERED := $(addprefix --ignore=tests/,project harness random_crawls simulation crawls) \
	-k 'not conformance_cases'

test-covered-units: $(TEST)
	$(BIN)/coverage run -m pytest -p no:twisted \
		-m '$(SHORT) and not crawl and not slow and not hypothesis' $(UNCOVERED)

# Many examples of each property.
test-many: $(TEST)
	$(PYTEST) --many -m '$(SHORT) and hypothesis and not crawl'

test-reactor: $(TEST)
	$(PYTEST) --reactor=default -m '$(SHORT) and crawl' $(or $(LOOP_TESTS),$(OF_THE_REACTOR))

REACTORLESS = $(BIN)/coverage run -m pytest -p no:twisted -m '$(SHORT) and crawl' $(ONE_LOOP)

test-reactorless: $(TEST)
	$(REACTORLESS) $(LOOP_TESTS)

# The same in two halves, by time: one would be the last to end.
FIRST_HALF := tests/crawls/test_faults.py tests/crawls/test_crawl_strange_storages.py \
	$(wildcard tests/crawls/test_crawl_[a-e]*.py)

test-reactorless-first: $(TEST)
	$(REACTORLESS) $(FIRST_HALF)

test-reactorless-second: $(TEST)
	$(REACTORLESS) $(addprefix --ignore=,$(FIRST_HALF))

test-long: $(TEST)
	$(PYTEST) -m 'long and not timed and not crawl and not browser'

# Most of these wait for a clock.
test-long-crawls: $(TEST)
	$(PYTEST) $(PARALLEL) --many -m 'long and not timed and crawl'

test-browser: $(TEST) $(BROWSER)
	$(PYTEST) -p no:twisted -m browser

# By themselves, because they measure; coverage would take longer than what is measured.
test-timed: $(TEST)
	$(PYTEST) --numprocesses=2 --dist=worksteal -m timed

# Whatever starts a Redis: with redis-server, if it is on the PATH.
REDIS := -k 'redis or steps' tests/storage tests/crawl/test_redis_queues.py \
	tests/crawls/test_crawl_scrapy_redis.py tests/crawls/test_fleet_walkthrough.py

test-redis: $(TEST)
	$(PYTEST) $(PARALLEL) -m '$(SHORT)' $(REDIS)

# The lowest versions of the direct dependencies that pyproject.toml allows, in an environment of their own.
test-lowest:
	@$(MAKE) --no-print-directory VENV=$(VENV)-lowest SCRAPY=scrapy $(VENV)-lowest/bin/python
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade 'pip>=25.1' uv
	$(VENV)-lowest/bin/python -m uv pip compile --quiet --python $(VENV)-lowest/bin/python \
		--resolution lowest-direct --extra archive --extra redis --extra tools \
		--output-file $(VENV)-lowest/lowest.txt pyproject.toml
	$(VENV)-lowest/bin/python -m pip install --quiet --editable '.[archive,redis,tools]' \
		--group test --constraint $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/python -m pytest $(PARALLEL) -m '$(SHORT) and not slow' $(MIDDLE)

# What depends on Python and Scrapy. Texts, logs and pages are the same for all of them.
FLOOR := tests/commands/test_history.py tests/crawl tests/crawls \
	tests/protocol/test_conformance.py tests/storage \
	$(addsuffix .py,$(addprefix --ignore=tests/crawls/test_crawl_,archive fleet hazards html missing robot \
	stored strange_storages usage ways_past))

test-floor: $(TEST)
	@failed=0; \
	$(PYTEST) $(PARALLEL) -m '$(SHORT) and not slow' $(FLOOR) || failed=1; \
	$(MAKE) --no-print-directory LOOP_TESTS=tests/crawls/test_crawl.py test-reactor || failed=1; \
	exit $$failed

test-middle: $(TEST)
	$(PYTEST) $(PARALLEL) -m '$(SHORT) and not slow' $(MIDDLE)

# Scrapy's own tests with the add-on in Scrapy's default settings, in an environment of their own.
test-scrapy:
	@$(MAKE) --no-print-directory VENV=$(VENV)-scrapys $(VENV)-scrapys/.project-$(WANTED)
	$(VENV)-scrapys/bin/python tests/scrapys_own.py

# A real crawl beside each plugin, and beside what Scrapy has.
test-ecosystem: $(ECOSYSTEM)
	$(PYTEST) tests/ecosystem $(addprefix --ignore=,$(SERVERS))

# Each skip names a program that is not installed, and how to install it.
test-servers: $(TEST)
	$(PYTEST) -rs $(SERVERS)

# The same, what the table has of other tests, and that of scrapyd where it is installed.
ecosystem-page: $(ECOSYSTEM)
	$(PYTEST) -m beside --write-page tests/ecosystem tests/crawls tests/project

lint: lint-rules lint-format lint-imports lint-types lint-workflows

lint-rules: $(LINT)
	$(BIN)/ruff check

lint-format: $(LINT)
	$(BIN)/ruff format --check

lint-imports: $(LINT)
	$(BIN)/lint-imports

lint-types: $(LINT)
	$(BIN)/mypy

# Without a network, if GH_TOKEN is not set.
lint-workflows: $(LINT)
	$(BIN)/zizmor --quiet .github

SEEDS ?= 0-99999
SIMULATED = $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

simulate: $(TEST)
	PYTHONPATH=tests $(BIN)/python -m simulation $(SIMULATED)

random-crawl: $(TEST)
	PYTHONPATH=tests $(BIN)/python -m random_crawls \
		$(if $(SEED),--seed $(SEED),--seeds $(if $(filter file,$(origin SEEDS)),today,$(SEEDS)))

docs: $(DOCS)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env docs build/docs

bench: $(BENCH)
	$(BIN)/python benchmarks

clean:
	rm -rf .venv .venv-* build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache \
		.hypothesis .scrapy
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(TEST) $(BROWSER) $(LINT) $(DOCS)

$(PROJECT): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[archive,tools]' '$(SCRAPY)'
	@touch $@

$(TEST): pyproject.toml | $(BIN)/python
	$(GROUPED) --group test '$(SCRAPY)'
	@touch $@

# The largest download of all, for a few tests.
$(BROWSER): pyproject.toml | $(BIN)/python
	$(GROUPED) --group browser --group test '$(SCRAPY)'
	@touch $@

# scrapy-rotating-proxies asks for the old package `typing`, which stands before Python's own module
# where sys.path is passed on to another process, as `scrapy bench` does.
$(ECOSYSTEM): pyproject.toml | $(BIN)/python
	$(GROUPED) --group ecosystem --group test '$(SCRAPY)'
	$(BIN)/python -m pip uninstall --quiet --yes typing
	@touch $@

$(LINT): pyproject.toml | $(BIN)/python
	$(GROUPED) --group lint --group test '$(SCRAPY)'
	@touch $@

$(DOCS): pyproject.toml | $(BIN)/python
	$(GROUPED) --group docs '$(SCRAPY)'
	@touch $@

$(BENCH): pyproject.toml | $(BIN)/python
	$(GROUPED) --group bench --group browser --group test '$(SCRAPY)'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo '$(PYTHON) is not Python 3.10 or later: make ... PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo '$(PYTHON) cannot make virtual environments.'; \
		  echo 'On Debian and Ubuntu: apt-get install python3-venv'; exit 1; }
	$(PYTHON) -m venv $(VENV)
