# The front door: `make help` lists the targets; CMakePresets.json holds the builds behind them.
JOBS ?= $(shell tools/jobs)
PREFIX ?= /usr/local
CMAKE_ARGS ?=
ALL = -D VOLTA_ISA_LEVELS=all $(CMAKE_ARGS)
CALLS ?= 100000
SEED ?= 1
.DEFAULT_GOAL := help
.PHONY: help setup demo build test bench bench-baseline bench-check bench-report lint format asan tsan coverage gates nightly docs site figures fuzz fuzz-readers fuzz-torch oracle install package static python clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## install missing tools (asks before using sudo)
	@tools/setup

build: setup  ## build everything, optimised, in build/release
	@tools/build release $(JOBS) all $(ALL)

demo: setup  ## train a network on handwritten digits, and measure it
	@tools/build release $(JOBS) volta_command $(if $(wildcard build/release/CMakeCache.txt),,-D VOLTA_ISA_LEVELS=native) $(CMAKE_ARGS)
	build/release/bin/volta train lenet --data digits
	build/release/bin/volta eval runs/lenet-digits/model.safetensors --data digits

test: setup  ## build and run all tests
	@tools/run_tests release $(JOBS) $(ALL)

asan: setup  ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/run_tests asan $(JOBS) $(CMAKE_ARGS)

tsan: setup  ## what runs on several threads, under ThreadSanitizer
	@tools/run_tests tsan $(JOBS) $(CMAKE_ARGS)

fuzz: setup  ## CALLS random calls of everything under the sanitizers, from SEED on
	@tools/build asan $(JOBS) volta_fuzz $(CMAKE_ARGS)
	@build/asan/tests/fuzz/volta_fuzz --calls $(CALLS) --seed $(SEED)

READER_CALLS ?= 1000000
READER_SECONDS ?= 60
fuzz-readers: setup  ## READER_CALLS damaged files for every reader of files, at most READER_SECONDS each
	@tools/build fuzz $(JOBS) volta_fuzz_readers $(CMAKE_ARGS)
	@tools/fuzz_readers build/fuzz/tests/fuzz/volta_fuzz_readers $(JOBS) --calls $(READER_CALLS) --seconds $(READER_SECONDS) --seed $(SEED)

nightly: setup  ## lint of all files, the suite under every sanitizer, gates, long fuzzing
	@tools/nightly $(JOBS)

coverage: setup  ## line coverage of src/ in build/coverage/coverage.html
	@tools/run_tests coverage $(JOBS) $(CMAKE_ARGS)
	@tools/coverage build/coverage

gates: setup  ## commit checks over all files, 98% coverage, benchmarks no slower than the baseline
	@tools/gates $(JOBS)

bench: build  ## compare with LibTorch: tables and build/bench/compare.json
	@bench/compare
	@bench/memory

bench-baseline: build  ## save this machine's ratios as the baseline
	@bench/compare --save-baseline build/bench/baseline.json

bench-check: build  ## compare with the saved baseline
	@bench/compare --check-baseline build/bench/baseline.json

figures: build  ## compile time, start-up, memory and size beside LibTorch's
	@cmake --preset release -B build/shared -D BUILD_SHARED_LIBS=ON $(CMAKE_ARGS) > /dev/null
	@cmake --build build/shared --parallel $(JOBS) --target volta
	@bench/figures --library build/shared/libvolta.so

bench-report: build  ## run the suites that have no result, and draw all in build/bench/report.html
	@tools/bench_report

lint: setup  ## clang-format and clang-tidy, for at most LINT_SECONDS (default 300)
	@tools/lint

format:  ## reformat the sources
	@tools/format

docs: setup  ## write the op table, docs/ops.md
	@tools/build release $(JOBS) volta_generate $(CMAKE_ARGS)
	@cp build/release/generated/ops.md docs/ops.md && echo "docs/ops.md written"

site:  ## the documentation as a site in build/site (installs mkdocs-material there, once)
	@tools/site

oracle:  ## ask PyTorch anew for the answers in tests/data, of all or of NAMES
	@bench/setup_peer > /dev/null
	@build/bench/peer/bin/python tests/oracle/make.py $(NAMES)

FUZZ_COUNT ?= 200000
FUZZ_SEED ?= 1
fuzz-torch:  ## run FUZZ_COUNT random chains of ops here and in PyTorch, and compare
	@tools/build release $(JOBS) volta_fuzz_torch $(ALL)
	@bench/setup_peer > /dev/null
	@build/bench/peer/bin/python tests/fuzz/torch/fuzz.py --program build/release/tests/volta_fuzz_torch \
	  --count $(FUZZ_COUNT) --seed $(FUZZ_SEED)

install: setup  ## install the library and the command under PREFIX (default /usr/local)
	@tools/build release $(JOBS) volta_installed $(ALL)
	@cmake --install build/release --prefix $(PREFIX)

package: setup  ## a .deb and a tarball in build/packages
	@tools/build release $(JOBS) volta_installed $(ALL)
	@cpack --config build/release/CPackConfig.cmake -B build/packages

static: setup  ## build/static/bin/volta, the command as one file that needs no library
	@tools/static $(JOBS) $(CMAKE_ARGS)

python: setup  ## build the Python package in a virtual environment under build/, and test it
	@tools/python $(JOBS)

clean:  ## remove build/
	@rm -rf build
