# make demo: from a clean clone to a profile of a bundled workflow
# make test: the same set-up, then all tests
# make help: the rest
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
DEVREADY:= $(VENV)/.ready-dev
LINTREADY:= $(VENV)/.ready-lint
TRACER  := collectors/ebpf/bin/tracehint-rec
TAG     := adapters/tag/bin/tracehint-tag
FANOTIFY:= adapters/fanotify/bin/tracehint-fanotify
SIM     := analyzer/predict/bin/tracehint-sim
PRELOAD := collectors/preload/bin/libtracehint.so
PYTEST  := $(BIN)/pytest
# The requirements of an extra alone: `pip install .[docs]` would build the programs in C.
requirements = $(BIN)/python scripts/requirements.py $(1) | $(BIN)/pip install -q --disable-pip-version-check -r /dev/stdin
# where ccache is, C that was compiled before is not again: by pip, here, and by the tests
export CCACHE_DIR ?= $(CURDIR)/build/ccache
COMPILED := CCACHE_BASEDIR="$(CURDIR)" CCACHE_NOHASHDIR=1 PATH="/usr/lib/ccache:$$PATH"
# what `make test` starts that the environment for development has not
ENGINES := nextflow snakemake-9.27.1 snakemake-8.30.0
# AUTO: go on without the eBPF recorder where it cannot be built; ON: fail
WITH_BPF ?= AUTO
TRACEHINT_DATA ?= $(abspath $(wildcard ../shared/data))
export TRACEHINT_DATA

.PHONY: bench-peers bench-merge bench-calls bench-creation bench-sites bench-gain-stores bench-gain bench-predict bench-spark bench-transfer notebook wheel bench-import real-runs-table test-kernels e2e-moosefs bench-adapters bench-montage bench-record bench-analyze demo engines test test-quick test-full dev lint format docs bench tracer clean help setup-run setup-test setup-lint setup-full

help:
	@sed -n 's/^# make /make /p' Makefile; sed -n 's/^\([a-z-]*\):.*## /make \1: /p' Makefile

setup-run:
	@scripts/setup.sh build run

setup-test:
	@scripts/setup.sh build run test

setup-lint:
	@scripts/setup.sh lint

setup-full:
	@scripts/setup.sh build run test full

$(VENV)/bin/python:
	"$$(scripts/python.sh)" -m venv $(VENV)

$(READY): pyproject.toml CMakeLists.txt | setup-run $(VENV)/bin/python
	$(COMPILED) $(BIN)/pip install -q --disable-pip-version-check -e .
	touch $@

$(DEVREADY): pyproject.toml CMakeLists.txt | setup-test $(VENV)/bin/python
	$(COMPILED) $(BIN)/pip install -q --disable-pip-version-check -e '.[dev,engines,spark]'
	touch $@ $(READY) $(LINTREADY)

$(LINTREADY): pyproject.toml | setup-lint $(VENV)/bin/python
	$(call requirements,lint)
	touch $@

tracer: ## build the C programs: the eBPF recorder, the preload library, the tagger, the simulator
	@scripts/setup.sh build
	@mkdir -p build $(dir $(TRACER)) $(dir $(TAG)) $(dir $(FANOTIFY)) $(dir $(SIM)) $(dir $(PRELOAD))
	$(COMPILED) cmake -S . -B build/tracer -DWITH_BPF=$(WITH_BPF) -DCMAKE_BUILD_TYPE=Release >build/tracer.log
	$(COMPILED) cmake --build build/tracer -j2 -- --no-print-directory
	@if [ -e build/tracer/tracehint-rec ]; then install -m 755 build/tracer/tracehint-rec build/tracer/tracehint-join $(dir $(TRACER)); \
	else grep "Without the eBPF tracer" build/tracer.log >&2; fi
	install -m 755 build/tracer/tracehint-tag $(TAG)
	install -m 755 build/tracer/tracehint-sim $(SIM)
	if [ -e build/tracer/libtracehint.so ]; then install -m 755 build/tracer/libtracehint.so $(PRELOAD); fi
	if [ -e build/tracer/tracehint-fanotify ]; then install -m 755 build/tracer/tracehint-fanotify $(FANOTIFY); fi

wheel: $(READY) ## a wheel with all programs linked statically, in dist/
	$(BIN)/pip wheel -q --disable-pip-version-check --no-deps -w dist -C cmake.define.WITH_BPF=ON .

demo: setup-run $(READY) tracer ## profile the bundled workflow
	@scripts/demo.sh $(BIN)/tracehint

dev: setup-test $(DEVREADY) tracer ## everything for developers, no tests

engines: dev ## the workflow engines that the tests run: fetched once (tests skip what cannot be)
	-@for one in $(ENGINES); do scripts/engines.sh build/engines $$one; done

test: engines ## all tests (under 15 minutes)
	$(PYTEST) -m "not full"

test-quick: dev ## the quick tests (under 90 s)
	$(PYTEST) -m "not slow"

test-full: setup-full engines ## also soaks, fuzzing, more engines and stores
	$(PYTEST)

lint: setup-lint $(LINTREADY) ## ruff, import-linter, mypy --strict, clang-format; builds nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/house.py
	$(BIN)/mypy
	find collectors adapters analyzer tests -name '*.[ch]' -not -path '*/build/*' -not -name 'vmlinux*.h' -print0 | xargs -0 clang-format --dry-run -Werror

format: $(LINTREADY) ## format all code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: dev ## build the documentation into site/
	$(call requirements,docs)
	for script in gen_cli_docs gen_cluster_docs gen_limits gen_man gen_secrets gen_store_docs rule_pages; do \
	    COLUMNS=90 $(BIN)/python scripts/$$script.py --check || exit 1; done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test-kernels: dev ## the coverage cases on stock Debian 6.1 and 6.12 kernels in QEMU
	@scripts/setup.sh kernels
	$(PYTEST) -n0 -m kernels tests/test_kernels.py

e2e-moosefs: dev ## a real MooseFS on five nodes with shaped links: hints against none
	$(PYTEST) tests/test_moosefs_proof.py -s

e2e-cephfs: setup-full dev ## a real CephFS on five nodes: what its adapter says and does
	$(PYTEST) tests/test_cephfs_real.py -n0 -s

bench: bench-record bench-analyze bench-montage bench-adapters ## all benchmarks

bench-calls: dev ## what the preload collector adds to small calls
	$(BIN)/python -m scripts.bench.bench_calls

bench-creation: dev ## what `tracehint run` adds to opens, reads and starts
	$(BIN)/python -m scripts.bench.bench_creation

bench-record: dev ## cost of recording, in alternating pairs
	$(BIN)/python -m scripts.bench.bench_record

bench-peers: dev ## the same calls and workflows below every recorder that is there
	$(BIN)/python -m scripts.bench.bench_peers

bench-analyze: dev ## time and memory of analyze
	$(BIN)/python -m scripts.bench.bench_analyze

bench-commands: dev ## time and memory of all commands on joined real workflows (TRACEHINT_DATA)
	$(BIN)/python -m scripts.bench.bench_commands

bench-merge: dev ## merge and analyze of the bundles of many hosts
	$(BIN)/python -m scripts.bench.bench_merge

bench-spark: dev ## analyze on both backends
	$(BIN)/python -m scripts.bench.bench_spark

bench-adapters: dev ## what setting hints costs
	$(BIN)/python -m scripts.bench.bench_adapters

bench-hints: dev ## what hints bring on a real MooseFS, five settings side by side; goes on where it was
	$(BIN)/python -m scripts.bench.hints

bench-gain: dev ## what placements bring on replays of real workflows on a real MooseFS, measured and predicted; goes on where it was
	$(BIN)/python -m scripts.bench.gain

bench-gain-stores: dev ## the same in bytes on a real Confuga, a real HDFS and real Work Queue workers; goes on where it was
	$(BIN)/python -m scripts.bench.gain_stores

bench-predict: dev ## speed and memory of predictions
	$(BIN)/python -m scripts.bench.bench_predict

bench-sites: setup-full dev ## metadata over four sites, and data over two, measured on real stores and predicted; writes the pages of results
	$(BIN)/python -m scripts.bench.sites.bench_sites
	$(BIN)/python -m scripts.bench.sites.data

bench-import: dev ## time and memory of importing large logs
	$(BIN)/python -m scripts.bench.bench_import

bench-transfer: dev ## how well rules transfer between instances of the corpus; writes the page's tables
	$(BIN)/python -m scripts.bench.score_corpus --write docs/reference/hint-transfer.md

bench-hints-cephfs: setup-full dev ## the same on a real CephFS
	$(BIN)/python -m scripts.bench.hints --store cephfs

bench-montage: dev ## what recording adds to the Montage run
	$(BIN)/python -m scripts.bench.bench_montage

real-runs-table: dev ## run the real workflows and write docs/reference/real-runs.md
	$(BIN)/python -m tests.e2e.real.table

notebook: dev ## execute the notebook of the docs on a fresh recording and store its outputs
	$(BIN)/python scripts/notebook.py

clean: ## remove what was built (not the virtual environment)
	rm -rf build site $(dir $(TRACER)) $(dir $(TAG)) $(dir $(FANOTIFY)) $(dir $(SIM)) $(dir $(PRELOAD)) tests/output
