# `make help` lists the targets. Needs GNU make and Python 3.11 or newer, nothing else.

PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
SITE := docs/_build
WORKERS := 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env browser demo test check lint format bench test-oldest test-cluster fuzz nightly hook docs \
	test-docs dist clean

# $(call install,FOLDER,CONSTRAINTS,EXTRA): an environment with exactly the pinned versions.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'polyplane needs Python 3.11 or newer, which "$(PYTHON)" is not: say make PYTHON=/path/to/python.' >&2; exit 1; }
	@echo 'Installing polyplane[$(3)] into $(1) with the versions of $(2) (about a minute, once).'
	@test -x $(1)/bin/pip || $(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install -qq --disable-pip-version-check -c $(2) -e '.[$(3)]'
	@touch $(1)/.installed
endef

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

env: $(VENV)/.installed  ## create .venv with the pinned versions of everything

$(VENV)/.installed: pyproject.toml constraints.txt
	$(call install,$(VENV),constraints.txt,dev)

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	$(call install,$(OLDEST),constraints-oldest.txt,test)

browser:  ## install Chromium, in which tests look at the page, where it is absent
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'Installing Chromium (Debian package chromium).' && apt-get update -qq && \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
		else echo 'There is no Chromium: tests of the page are skipped until you install it.'; fi; }

demo: env  ## the guided first minute: five machines on digits, pictures, a model in files
	@$(BIN)/polyplane demo

test: lint browser  ## lint, then the test suite compiled and, where it looks inside loops, without the JIT
	@echo 'Testing the compiled code, in $(WORKERS) processes (WORKERS=n).'
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
	@echo 'Testing its loops without the JIT.'
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -p no:cacheprovider \
		-m 'loops and not compiled'

check: test  ## the same as test

lint: env  ## formatting, ruff, types, layers and docstrings
	@echo 'Checking the formatting (ruff format).'
	@$(BIN)/ruff format --check --quiet . || { echo 'Some files are not formatted: make format does it.' >&2; exit 1; }
	@echo 'Checking the rules (ruff check).'
	@$(BIN)/ruff check --quiet .
	@echo 'Checking the types (mypy).'
	@$(BIN)/mypy --no-error-summary
	@echo 'Checking the layers (import-linter).'
	@$(BIN)/lint-imports --no-logo
	@echo 'Checking the docstrings (numpydoc).'
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_docstrings.py -k 'numpydoc or first_sentences'

format: env  ## format the code and apply the fixes that ruff is sure of
	@echo 'Formatting.'
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: env  ## run the benchmarks
	@echo 'Running the benchmarks.'
	@$(BIN)/python -m benchmarks

test-oldest: $(OLDEST)/.installed  ## the test suite with the oldest supported dependencies
	@echo 'Testing with the versions of constraints-oldest.txt.'
	@$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile

test-cluster: env  ## train on a scheduler and workers that are processes of their own, with TLS
	@echo 'Starting clusters on loopback; this takes a minute or two.'
	@POLYPLANE_CLUSTER=1 $(BIN)/python -m pytest tests/backends/test_separate_processes.py

SECONDS := 60
fuzz: env  ## read random files for a minute, or SECONDS=n, and compare with the plain rules
	@echo 'Reading random files for $(SECONDS) seconds a format.'
	@$(BIN)/python -m tests.data.fuzz --seconds $(SECONDS)

nightly: export POLYPLANE_NIGHTLY := 1
nightly: test-oldest test-cluster fuzz  ## what is too long for every commit: the oldest versions, clusters, random files

docs: env  ## build the site with its gallery, offline, into docs/_build/html
	@echo 'Putting the pages together, running the examples and building the site (a few minutes).'
	@$(BIN)/python docs/site/assemble.py $(SITE)/pages
	@$(BIN)/python -m sphinx -W --keep-going -q -a -c docs/site -d $(SITE)/doctrees $(SITE)/pages $(SITE)/html
	@echo 'Open $(SITE)/html/index.html.'

test-docs: docs browser  ## build the site, then read it in a browser: links, search, themes, widths
	@POLYPLANE_SITE=$(abspath $(SITE)/html) $(BIN)/python -m pytest tests/site

dist: env  ## build sdist and wheel, check them, and use the wheel in a new environment
	@echo 'Building the packages, and installing the wheel alone (a few minutes).'
	@rm -rf dist && mkdir dist
	@$(BIN)/python -m build --outdir dist . >dist/build.log 2>&1 || { cat dist/build.log >&2; exit 1; }
	@$(BIN)/python -m tests.packages.check dist --constraints constraints.txt

hook: env  ## install a git pre-commit hook that runs make lint
	@hook="$$(git rev-parse --git-path hooks/pre-commit)" && \
	if [ -e "$$hook" ] && ! grep -q 'make lint' "$$hook"; then \
		echo "Another hook is at $$hook: remove it, or add the line 'make lint' to it." >&2; exit 1; fi && \
	mkdir -p "$$(dirname "$$hook")" && printf '#!/bin/sh\nexec make lint\n' > "$$hook" && chmod +x "$$hook" && \
	echo "Installed $$hook: every commit runs make lint first."

clean:  ## remove the environments, caches and build outputs
	@echo 'Removing the environments, caches and build outputs.'
	@rm -rf $(VENV) $(OLDEST) build dist $(SITE) src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache .grimp_cache .coverage htmlcov
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
