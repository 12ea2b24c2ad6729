# make demo: from a clean clone to a profile of a bundled workflow
# make test: the same set-up, then all tests
# make help: the rest
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
DEVREADY:= $(VENV)/.ready-dev
TRACER  := collectors/ebpf/bin/tracehint-rec
PYTEST  := $(BIN)/pytest
TRACEHINT_DATA ?= $(wildcard ../shared/data)
export TRACEHINT_DATA

.PHONY: demo test test-quick test-full dev lint format docs bench tracer clean help setup-run setup-test

help:
	@sed -n 's/^# make /make /p' Makefile; sed -n 's/^\([a-z-]*\):.*## /make \1: /p' Makefile

setup-run:
	@scripts/setup.sh build run

setup-test:
	@scripts/setup.sh build run test

$(VENV)/bin/python:
	"$$(scripts/python.sh)" -m venv $(VENV)

$(READY): pyproject.toml CMakeLists.txt | setup-run $(VENV)/bin/python
	$(BIN)/pip install -q --disable-pip-version-check -e .
	touch $@

$(DEVREADY): pyproject.toml CMakeLists.txt | setup-test $(VENV)/bin/python
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev,engines]'
	touch $@ $(READY)

tracer: ## build the eBPF recorder into collectors/ebpf/bin
	@scripts/setup.sh build
	cmake -S . -B build/tracer -DWITH_BPF=ON -DCMAKE_BUILD_TYPE=Release >/dev/null
	cmake --build build/tracer -j2
	mkdir -p collectors/ebpf/bin
	cp build/tracer/tracehint-rec $(TRACER)

demo: setup-run $(READY) tracer ## profile the bundled workflow
	@scripts/demo.sh $(BIN)/tracehint

dev: setup-test $(DEVREADY) tracer ## everything for developers, no tests

test: dev ## all tests (under 15 minutes)
	$(PYTEST) -m "not full"

test-quick: dev ## the quick tests (under 90 s)
	$(PYTEST) -m "not slow and not full"

test-full: dev ## also soaks, fuzzing, more engines and stores
	$(PYTEST)

lint: dev ## ruff, mypy --strict, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	find collectors adapters tests -name '*.[ch]' -not -path '*/build/*' -not -name 'vmlinux*.h' -print0 | xargs -0 clang-format --dry-run -Werror

format: dev ## format all code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: dev ## build the documentation into site/
	$(BIN)/pip install -q --disable-pip-version-check '.[docs]'
	$(BIN)/mkdocs build --strict

bench: bench-record bench-analyze ## all benchmarks

bench-record: dev ## cost of recording, in alternating pairs
	$(BIN)/python -m tests.bench.bench_record

bench-analyze: dev ## time and memory of analyze
	$(BIN)/python -m tests.bench.bench_analyze

clean: ## remove what was built (not the virtual environment)
	rm -rf build site collectors/ebpf/bin tests/output
