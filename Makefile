# `make demo` and `make test` are the two commands of the README, `make check` is the quick one. Each sets up all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STORE := $(CURDIR)/.demo

.PHONY: demo test check lint docs bench shepherd clean

demo: $(VENV)/installed
	@mkdir -p $(STORE)
	@echo '$$ jobmeter run --name demo --memory 1g --cpus 2 -- python3 examples/pipeline.py'
	@$(BIN)/jobmeter run --name demo --memory 1g --cpus 2 --store $(STORE) --report $(STORE)/record.json -- $(BIN)/python examples/pipeline.py
	@echo 'The whole record: $(STORE)/record.json'

# Lint, types and the tests that neither run jobs for seconds nor need a server: under a minute on two idle cores.
QUICK := analyse cli/shared exchange journal kernel meter report store workflow/spec \
	test_atomic_file.py test_settings.py test_suggestion.py test_times.py test_units.py
SLOW := tests/report/plot/test_browser.py tests/store/test_concurrency.py
check: $(VENV)/installed-for-tests lint
	$(BIN)/pytest -q -n 2 --dist loadgroup $(SLOW:%=--ignore=%) $(QUICK:%=tests/%) $(PYTEST_OPTIONS)

# Tests wait more than they compute: four workers keep two cores busy.
test: $(VENV)/installed-for-tests lint docs
	$(BIN)/pytest -n 4 --dist loadgroup -m 'not alone' $(PYTEST_OPTIONS)
	$(BIN)/pytest -m alone $(PYTEST_OPTIONS)

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

# The compiled shepherd is committed: users need no compiler. See src/jobmeter/launch/shepherd.c.
SHEPHERD_FLAGS := -Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
	-fno-pie -no-pie -Wall -Wextra -Werror -Wl,--build-id=none -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,-n -s
shepherd:
	cd src/jobmeter/launch && gcc $(SHEPHERD_FLAGS) -fcf-protection=none -o shepherd-x86_64 shepherd.c
	cd src/jobmeter/launch && aarch64-linux-gnu-gcc $(SHEPHERD_FLAGS) -o shepherd-aarch64 shepherd.c
	cd src/jobmeter/launch && sha256sum shepherd.c >shepherd.built-from

clean:
	rm -rf $(VENV) $(STORE) .site build dist
