# Two commands: `make demo` shows comfyd at work, `make test` proves it. `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help setup build demo serve test test-asan test-tsan kubernetes chaos fuzz bench format check clean

help:            ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:           ## Install the packages that building and running need
	@scripts/setup.sh build

build: setup     ## Build build/release/comfyd
	@COMFYD_CMAKE_FLAGS="-DCOMFYD_TESTS=OFF -DCOMFYD_BENCH=OFF" scripts/build.sh release comfyd

demo:            ## Build, then run the example workflows on the embedded engine; pictures land in out/
	@scripts/demo.sh

serve: build     ## Serve on 127.0.0.1:8080 until stopped
	@exec build/release/comfyd serve

test:            ## Build and run every test
	@scripts/test.sh release

test-asan:       ## The suite under AddressSanitizer and UBSan
	@scripts/test.sh asan

test-tsan:       ## The suite under ThreadSanitizer
	@scripts/test.sh tsan

kubernetes:      ## The provider of Pods against a real API server, which is built first: some minutes
	@scripts/kubernetes.sh

chaos:           ## Every trouble at once under load, for a minute; needs what `make test` has built
	@COMFYD_CHAOS_SECONDS=$${COMFYD_CHAOS_SECONDS:-60} build/release/tests/chaos/chaos_test --gtest_filter='Mix.*'

fuzz:            ## Mutated input at every door, under AddressSanitizer, a minute each
	@scripts/fuzz.sh

bench:           ## Whole-system benchmarks
	@scripts/bench.sh

format:          ## Format all sources
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format-19 -i

check:           ## Rules that a compiler does not check (layers, formatting, coroutine style)
	@scripts/check.sh

clean:           ## Remove build outputs
	@rm -rf build out
