# The one door: everything is set up inside this folder, nothing is left outside it.
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
OLDEST := .venv-oldest
RELEASE := .venv-release
# What `make test-kernels` plays: kernels of OpenBLAS, and numbers of its threads.
KERNELS ?= Haswell Zen SkylakeX Sandybridge Nehalem
THREADS ?= 1 2 4
# The stamp carries the version of Python, so that another one gets an environment of its own.
VERSION := $(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])")
READY := $(VENV)/.ready-$(VERSION)
OLDEST_READY := $(OLDEST)/.ready-$(VERSION)
DOCS_READY := $(VENV)/.ready-docs-$(VERSION)
RELEASE_READY := $(RELEASE)/.ready-$(VERSION)

# Caches of the tools stay in the clone; BLAS at one thread because work is spread over processes.
export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_CACHE_DIR := $(CURDIR)/.cache/uv
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export XDG_CACHE_HOME := $(CURDIR)/.cache
export TMPDIR := $(CURDIR)/.cache/tmp
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: help demo test test-kernels test-oldest check coverage hooks docs tutorials release-check bench bench-peers clean

help:
	@echo "make demo   set up, run a made campaign from its first file to its report, then the quick reproduction of the paper"
	@echo "make test   set up and run every test"
	@echo "make test-kernels  run the numeric tests on several kernels of OpenBLAS, with 1, 2 and 4 threads"
	@echo "make test-oldest   run every test with the lowest versions that pyproject.toml allows"
	@echo "make check  set up, lint, type-check, check the layers and run the quick tests"
	@echo "make coverage  run every test with coverage, list each file, and fail below the floor in pyproject.toml"
	@echo "make hooks  set up, and let git run lint, types and layers before each commit"
	@echo "make release-check  build what is published in dist/, install it into an empty environment and try it there"
	@echo "make tutorials  run the tutorials and draw their pictures anew, into docs/tutorials/images"
	@echo "make docs   set up, run the examples and build the documentation site into site/, with every link checked"
	@echo "make bench  set up and print the benchmarks (ratios measured side by side)"
	@echo "make bench-peers  install other bandit libraries too, and compare with them"
	@echo "make clean  remove everything the other targets made"

$(READY): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "armful needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.12 ..."; exit 1; }
	@mkdir -p .cache/tmp
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $(READY)

demo: $(READY)
	rm -rf demo/campaign
	@mkdir -p demo
	$(BIN)/armful demo --out demo/campaign
	$(BIN)/armful reproduce --sizes 2,4,8,16 --runs 20 --out demo/reproduction

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadscope --basetemp=.cache/pytest

test-kernels: $(READY)
	$(BIN)/python tests/kernels.py --kernels $(KERNELS) --threads $(THREADS)

$(OLDEST_READY): pyproject.toml
	@mkdir -p .cache/tmp
	rm -rf $(OLDEST)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/$(SCRIPTS)/python -m pip install --quiet "uv>=0.7"
	$(OLDEST)/$(SCRIPTS)/uv pip install --quiet --python $(OLDEST)/$(SCRIPTS)/python --resolution lowest-direct --editable ".[all]" --group test
	@touch $(OLDEST_READY)

test-oldest: $(OLDEST_READY)
	$(OLDEST)/$(SCRIPTS)/python -m pytest -n auto --dist loadscope --basetemp=.cache/pytest-oldest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto --dist loadscope --basetemp=.cache/pytest -q -m "not slow"

tutorials: $(READY)
	$(BIN)/python tools/draw_tutorials.py

# In the environment of the tests, which goes when pyproject.toml changes, and this stamp with it.
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $(DOCS_READY)

# Zensical keeps pages as files in .cache, also when docstrings have changed; its own --clean would empty all of .cache.
docs: $(DOCS_READY)
	$(BIN)/python tools/pages.py
	@find .cache -maxdepth 1 -type f -delete
	rm -rf site
	$(BIN)/zensical build --strict
	$(BIN)/python tools/search_from_disk.py site
	$(BIN)/python tools/check_site.py site
	@echo "site/index.html is the documentation"

coverage: $(READY)
	rm -rf .cache/coverage
	$(BIN)/coverage run -m pytest -n auto --dist loadscope --basetemp=.cache/pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

hooks: $(READY)
	$(BIN)/pre-commit install

$(RELEASE_READY): pyproject.toml
	@mkdir -p .cache/tmp
	rm -rf $(RELEASE)
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(RELEASE)/$(SCRIPTS)/python -m pip install --quiet --group release
	@touch $(RELEASE_READY)

# `make release-check TAG=v1.2.3` also checks that this is the version that is built and that the changelog has it.
release-check: $(RELEASE_READY)
	rm -rf dist
	$(RELEASE)/$(SCRIPTS)/python -m build --outdir dist
	$(RELEASE)/$(SCRIPTS)/twine check --strict dist/*
	$(RELEASE)/$(SCRIPTS)/python tests/release.py dist

bench: $(READY)
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/oracles.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/scan.py

bench-peers: $(READY)
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python benchmarks/peers.py --write

clean:
	rm -rf site docs/gallery docs/changelog.md docs/contributing.md docs/reference/command-line.md
	rm -rf $(VENV) $(OLDEST) $(RELEASE) .cache .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache demo dist
