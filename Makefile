# SPDX-License-Identifier: Apache-2.0
# The commands of this repository. Each one first installs what it needs (tools/bootstrap), then uses a CMake preset.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# One job per core, fewer if memory is short: a unit with torch takes up to 2.5 GiB. make JOBS=n overrides.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemAvailable/ { n = int($$2 / 2621440); \
  print n < 1 ? 1 : n < cores ? n : cores }' /proc/meminfo)
# Ubuntu 22.04's g++ is version 11; bootstrap installs g++-12 too.
ifeq ($(origin CXX),default)
  CXX := $(shell g++ -dumpversion 2>/dev/null | awk '$$1 < 12 { print "g++-12"; old = 1 } END { if (!old) print "g++" }')
endif
export CXX
RELEASE := build/release
STOKER := $(RELEASE)/apps/stoker/stoker
DEMO_DATA := build/demo-data/fashion

.PHONY: help bootstrap build demo install test test-cpus test-long goldens bench bench-peers bench-data bench-learning bench-memory bench-observe bench-doctor bench-ranks dev asan tsan fuzz tidy format docs bundle gpu-pack bundle-test clean

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

bootstrap: ## Install missing packages: compiler, libraries and torch
	@tools/bootstrap

# $(call configure,preset) writes build/preset/ once; ninja notices later changes of the CMake files.
configure = [ -f build/$(1)/build.ninja ] || cmake --preset $(1)
# $(call ninja,preset,targets)
ninja = ninja -C build/$(1) -j $(JOBS) $(2)

build: bootstrap ## Build everything (preset release)
	@$(call configure,release)
	@$(call ninja,release)

demo: bootstrap ## Train on the embedded Fashion-MNIST sample and print the accuracy
	@$(call configure,release)
	@$(call ninja,release,stoker)
	@tools/demo $(STOKER) $(DEMO_DATA)

test: ## Build and run all tests except the long ones
	@tools/bootstrap doxygen
	@$(call configure,release)
	@$(call ninja,release,all headers benches)
	@ctest --preset release -j 2

test-cpus: build ## Run training and arithmetic tests like 9 other kinds of CPU, and with all cores busy: an hour
	@tools/test_cpus $(RELEASE) $(TESTS)

bench-peers: bootstrap ## Compare with Python PyTorch, accelerate, Lightning: 40 minutes; QUICK=1: a check that it runs
	@$(call configure,release)
	@$(call ninja,release,stoker step_worker)
	@tools/demo_data $(DEMO_DATA)
	@bench/peers/run $(RELEASE) $(DEMO_DATA) $(if $(QUICK),--quick)

bench-data: ## Compare the loader with DataLoader and FFCV: 30 minutes; QUICK=1: a check that it runs
	@tools/bootstrap libopencv-dev libturbojpeg0-dev || tools/bootstrap  # without them FFCV is skipped
	@$(call configure,release)
	@$(call ninja,release,stoker loader_bench)
	@$(if $(QUICK),,bench/record data-$$(bench/cpu)) bench/data/run $(RELEASE) $(if $(QUICK),--quick)

bench-memory: bootstrap ## Measure what saves memory, and what tune finds: bytes, time and accuracy; 90 minutes
	@$(call configure,release)
	@$(call ninja,release,stoker recompute_bench chunked_loss_bench in_backward_bench tune_bench)
	@tools/demo_data $(DEMO_DATA)
	@bench/record recompute $(RELEASE)/bench/recompute_bench 6
	@bench/record chunked-loss $(RELEASE)/bench/chunked_loss_bench 7
	@bench/record optimizer-in-backward $(RELEASE)/bench/in_backward_bench 9
	@bench/record tune bench/memory/tune_cases $(RELEASE) $(DEMO_DATA)
	@bench/record batch-norm bench/memory/batch_norm_bench.py $(STOKER)
	@bench/record recompute-table bench/memory/recompute_table.py $(STOKER)

doctor_data = $(addprefix $${STOKER_DATA:-../shared/data}/,imagenet-sample cifar10 tinyshakespeare)
bench-doctor: bootstrap ## Measure what the doctor says of planted faults, in runs and in Python scripts: 5 hours
	@$(call configure,release)
	@$(call ninja,release,stoker)
	@bench/record doctor-cures bench/doctor/cures.py $(STOKER) $(doctor_data)
	@bench/record doctor-apply bench/doctor/apply.py $(STOKER) $(doctor_data)
	@bench/record doctor-run-pairs bench/doctor/run_pairs.py $(STOKER) $(doctor_data)
	@bench/record doctor-scripts bench/doctor/scripts.py $(STOKER)
	@bench/record doctor-styles bench/doctor/styles.py $(STOKER)
	@bench/record doctor-pairs bench/doctor/pairs.py $(STOKER)
	@bench/record doctor-peers bench/doctor/peers.py $(STOKER)
	@bench/record doctor-overhead bench/doctor/overhead.py $(STOKER)

bench-observe: bootstrap ## Measure what observing a run costs, and traces beside HolisticTraceAnalysis: 40 minutes
	@$(call configure,release)
	@$(call ninja,release,stoker monitor_bench anatomy_bench profile_bench)
	@bench/record monitor $(RELEASE)/bench/monitor_bench
	@bench/record anatomy $(RELEASE)/bench/anatomy_bench 30
	@bench/record profile $(RELEASE)/bench/profile_bench 7
	@PYTHONPATH=$$(tools/python_packages bench/observe/requirements.txt) bench/record trace \
	  python3 bench/observe/trace_peers.py $(STOKER) $${STOKER_DATA:-../shared/data}/traces

bench-ranks: bootstrap ## Measure several processes: beside Python's, overlap, scaling: 30 minutes; QUICK=1: a check that it runs
	@$(call configure,release)
	@$(call ninja,release,stoker relay overlap_bench pipeline_bench)
	@tools/demo_data $(DEMO_DATA)
	@bench/ranks/run $(RELEASE) $(DEMO_DATA) $(if $(QUICK),--quick)

bench-learning: bootstrap ## Compare final results with Python PyTorch's: 20 minutes; QUICK=1: a check that it runs
	@$(call configure,release)
	@$(call ninja,release,stoker)
	@bench/peers/learn $(STOKER) $(if $(QUICK),--quick)

install: build ## Install program, library and CMake package into PREFIX (default /usr/local)
	@cmake --install $(RELEASE) --prefix $(or $(PREFIX),/usr/local) >/dev/null
	@echo "Installed into $(or $(PREFIX),/usr/local); CMake projects use it with find_package(stoker 0.2 REQUIRED)"

test-long: build ## Run the tests that take minutes, then 10,000,000 executions of each fuzz target: 2 hours more
	@ctest --preset long
	@$(MAKE) fuzz RUNS=10000000

goldens: bootstrap ## Rebuild the golden files with Python PyTorch and show what changed
	@python3 tests/golden/remake.py

dev: bootstrap ## Build and run all tests with the preset for daily work: -O1 -g1
	@$(call configure,dev)
	@$(call ninja,dev)
	@ctest --preset dev

asan: bootstrap ## Run all tests with the address, leak and undefined-behaviour sanitizers
	@$(call configure,asan)
	@$(call ninja,asan)
	@ctest --preset asan

tsan: bootstrap ## Run the torch-free tests with the thread sanitizer
	@$(call configure,tsan)
	@$(call ninja,tsan,torch_free_tests)
	@ctest --preset tsan

fuzz: ## Fuzz the file readers: SECONDS=15 each, or RUNS=n executions each
	@tools/bootstrap clang-14 libclang-rt-14-dev || tools/bootstrap clang-14  # in Ubuntu 22.04 clang-14 contains both
	@$(call configure,fuzz)
	@$(call ninja,fuzz,fuzzers)
	@tests/fuzz/run build/fuzz $(if $(RUNS),-runs=$(RUNS),-max_total_time=$(or $(SECONDS),15))

tidy: ## Check our code with clang-tidy; FILES=REGEX: only these files
	@tools/bootstrap clang-tidy-14
	@$(call configure,tidy)
	@run-clang-tidy-14 -quiet -p build/tidy -j $(JOBS) '$(or $(FILES),/(src/stoker|apps|tests|bench|examples)/)'

format: ## Format our C++ with clang-format
	@tools/bootstrap clang-format-14
	@git ls-files -z -co --exclude-standard '*.h' '*.cpp' '*.cu' | xargs -0 clang-format-14 -i

docs: ## Write the library's reference to build/docs/html/index.html
	@tools/bootstrap doxygen
	@mkdir -p build/docs
	@doxygen Doxyfile

bench: bootstrap ## Measure the engine and write the results to bench/results/ (25 minutes on a quiet machine)
	@$(call configure,release)
	@$(call ninja,release,stoker benches)
	@bench/record sinks $(RELEASE)/bench/sinks_bench 60
	@bench/record step $(RELEASE)/bench/step_bench pairs 30
	@bench/record step-operators $(RELEASE)/bench/step_bench operators
	@tools/bootstrap valgrind
	@bench/record step-instructions bench/train/step_instructions.py $(RELEASE)
	@bench/record optim $(RELEASE)/bench/fused_bench 30
	@bench/record optim-threads $(RELEASE)/bench/fused_bench 30 intra_op=$$(nproc)
	@bench/record threads bench/train/threads_bench.py $(STOKER)

bundle: build ## Pack program, tests and benchmarks into build/bundle/, for another Linux that has torch 2.11
	@$(call ninja,release,benches)
	@tools/bundle $(RELEASE) build/bundle

gpu-pack: build ## Pack the same with some data; ./gpu-run in it tests and measures on a GPU machine in 9 minutes
	@$(call ninja,release,benches)
	@tools/bundle $(RELEASE) build/gpu-pack $(or $(STOKER_DATA),../shared/data)

bundle-test: bundle ## Try the bundle in a new Debian 12 with only Python and torch (as root)
	@[ "$$(id -u)" != 0 ] || tools/bootstrap debootstrap
	@tools/bundle_test "$$(ls -t build/bundle/stoker-*-linux-$$(uname -m).tar.gz | head -n 1)"

clean: ## Remove build/ (runs/ and the torch cache stay)
	rm -rf build
