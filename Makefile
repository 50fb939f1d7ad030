# Commands for a fresh clone, with only Python, pip and make installed:
#   make demo   install the base, then answers about an invented company judged
#   make test   install, then lint, types and all tests
#   make unit   install, then the fast tests: no browser, program, training or whole data set
#   make coverage  install, then the branches of verdict, policy and markers that their tests take
#   make hosts  install LiteLLM, DeepEval and Ragas into environments of their own, then their tests
#   make docs   install, then the documentation as a site in build/site
#   make links  install, then ask every page that the documentation links to; needs the internet
#   make bench  install, then speed and memory by size, written to docs/performance.md;
#               small: make bench SIZES=10000,100000 ROWS=50 OUTPUT=build/performance.md
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test hosts docs links bench lint format types unit all coverage browser wheel clean

demo: $(VENV)/.demo
	$(BIN)/guardrail demo

test: lint types all

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy

all: $(VENV)/.dev browser
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal tests/guardrail \
		--cov=guardrail.verdict --cov=guardrail.policy --cov=guardrail.markers --cov-branch \
		--cov-report=term-missing:skip-covered --cov-fail-under=95

# These pin versions of their own, so they cannot live beside the others. LiteLLM's tests also run in
# "make all" once it is there.
hosts: $(VENV)/.dev build/litellm/bin/litellm build/deepeval/.done build/ragas/.done
	$(BIN)/python -m pytest tests/chains/gateway/protocols/test_litellm_proxy.py
	build/deepeval/bin/python -m pytest tests/chains/evaluation/test_deepeval.py
	build/ragas/bin/python -m pytest tests/chains/evaluation/test_ragas.py

# Ragas 0.4 imports a module that later releases of langchain-community lack.
build/ragas/.done: HOST = ragas "langchain-community<0.4"
build/deepeval/.done: HOST = deepeval
build/deepeval/.done build/ragas/.done: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(HOST) \
		--editable . pytest pytest-asyncio pytest-timeout
	touch $@

build/litellm/bin/litellm:
	$(PYTHON) -m venv build/litellm
	build/litellm/bin/python -m pip install --quiet --disable-pip-version-check "litellm[proxy]"

# The pages are tested in a real browser. Root on a Debian machine gets it installed;
# elsewhere install Chromium yourself, or the browser tests are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	 { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	   { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	 echo "no Chromium found: browser tests will be skipped"

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

links: $(VENV)/.dev
	$(BIN)/python -m tests.docs.external_links

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bench $(if $(SIZES),--sizes $(SIZES)) \
		$(if $(ROWS),--rows $(ROWS)) $(if $(OUTPUT),--output $(OUTPUT))

wheel: | $(BIN)/python
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing the base into $(VENV), some 520 MB; half a minute or more"
	$(PIP) --editable .
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[docs]"
	touch $@

# torch first and alone: the pinned CPU build is needed by the tests of the GPU back ends.
$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing everything that the tests need into $(VENV); a minute or two"
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
