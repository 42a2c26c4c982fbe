# `make demo` and `make test` are the two commands of the README, `make check` is the quick one. Each sets up all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STORE := $(CURDIR)/.demo

.PHONY: demo test check fuzz lint docs bench shepherd check-shepherd clean

demo: $(VENV)/installed
	@mkdir -p $(STORE)
	@echo '$$ jobmeter run --name demo --memory 1g --cpus 2 -- python3 examples/pipeline.py'
	@$(BIN)/jobmeter run --name demo --memory 1g --cpus 2 --store $(STORE) --report $(STORE)/record.json -- $(BIN)/python examples/pipeline.py
	@echo 'The whole record: $(STORE)/record.json'

# Lint, types and the tests that neither run jobs for seconds nor need a server: under a minute on two idle cores.
QUICK := analyse exchange journal kernel meter report store workflow/spec \
	test_atomic_file.py test_moments.py test_settings.py test_suggestion.py test_times.py test_units.py
SLOW := tests/report/page/test_browser.py tests/store/test_concurrency.py
check: $(VENV)/installed-for-tests lint
	$(BIN)/pytest -q -n 2 --dist loadgroup $(SLOW:%=--ignore=%) $(QUICK:%=tests/%) $(PYTEST_OPTIONS)

# Tests wait more than they compute: four workers keep two cores busy. What fails beside others is run once more by itself.
FAILED_ONCE := $(BIN)/pytest -n 1 --dist loadgroup --last-failed --last-failed-no-failures none
test: $(VENV)/installed-for-tests lint docs
	@rm -f .pytest_cache/v/cache/lastfailed
	@$(BIN)/python -m compileall -q src # tests start thousands of programs: none compiles what it imports
	$(BIN)/pytest -n 4 --dist loadgroup -m 'not alone' $(PYTEST_OPTIONS) || { echo 'UNSTEADY if it passes now:'; $(FAILED_ONCE); }
	$(BIN)/pytest -m alone $(PYTEST_OPTIONS)

# As many bad files as you like, at random: make fuzz CASES=1000. A case of journals or imports is eight files.
CASES ?= 100
fuzz: $(VENV)/installed-for-tests
	JOBMETER_FUZZ_CASES=$(CASES) $(BIN)/pytest -s tests/fuzz $(PYTEST_OPTIONS)

lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site, in .site/. Whatever would be a warning fails it.
docs: $(VENV)/installed-for-tests
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/installed-for-tests
	$(BIN)/python -m benchmarks

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo 'jobmeter needs Python 3.10 or newer: make PYTHON=python3.12 demo'; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'Python has no venv here. On Debian: apt-get install python3-venv'; exit 1; }

$(VENV)/installed: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-for-tests: $(BIN)/python pyproject.toml scripts/install-test-parts
	@scripts/install-test-parts
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable . --group test
	@touch $@ $(VENV)/installed

# The compiled shepherds are committed: users need no compiler. See src/jobmeter/launch/shepherd.c. They are built by this
# compiler, of Debian 12, and no other: so that whoever builds them gets the same bytes. `make check-shepherd` compares.
SHEPHERD_GCC := 12.2.0
SHEPHERD_CC_x86_64 := $(if $(filter x86_64,$(shell uname -m)),gcc-12,x86_64-linux-gnu-gcc-12)
SHEPHERD_CC_aarch64 := $(if $(filter aarch64,$(shell uname -m)),gcc-12,aarch64-linux-gnu-gcc-12)
SHEPHERD_FLAGS := -Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-ident \
	-fno-pie -no-pie -Wall -Wextra -Werror -Wl,--build-id=none -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,-n -s
SHEPHERD_FLAGS_x86_64 := -fcf-protection=none -march=x86-64
SHEPHERD_FLAGS_aarch64 := -mbranch-protection=none -march=armv8-a
LAUNCH := src/jobmeter/launch
SHEPHERDS := $(LAUNCH)
REBUILT := build/shepherd

shepherd: build-shepherd-x86_64 build-shepherd-aarch64
	cd $(LAUNCH) && sha256sum shepherd.c >shepherd.built-from

build-shepherd-%:
	@version=$$($(SHEPHERD_CC_$*) -dumpfullversion) && [ "$$version" = $(SHEPHERD_GCC) ] || { \
		echo "shepherd-$*: needs $(SHEPHERD_CC_$*) $(SHEPHERD_GCC), here it is $${version:-missing}. On Debian 12: scripts/install-test-parts"; \
		exit 1; }
	@mkdir -p $(SHEPHERDS)
	$(SHEPHERD_CC_$*) $(SHEPHERD_FLAGS) $(SHEPHERD_FLAGS_$*) -o $(SHEPHERDS)/shepherd-$* $(LAUNCH)/shepherd.c

# Builds both anew, elsewhere, and compares them byte for byte with the committed ones. A test of `make test` runs it.
check-shepherd:
	@$(MAKE) --no-print-directory build-shepherd-x86_64 build-shepherd-aarch64 SHEPHERDS=$(REBUILT)
	cmp $(REBUILT)/shepherd-x86_64 $(LAUNCH)/shepherd-x86_64
	cmp $(REBUILT)/shepherd-aarch64 $(LAUNCH)/shepherd-aarch64

clean:
	rm -rf $(VENV) $(STORE) .site build dist
