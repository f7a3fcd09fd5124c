#!/usr/bin/env bash
# Installs what tests need, builds everything and runs every test: scripts/test.sh [release|debug|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/setup.sh build test
# A python3 that is a script (pyenv's) takes several times as long to start, and tests start it often.
if [ "$(head -c 2 "$(command -v python3)")" = '#!' ]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi
[ "$preset" != release ] || scripts/check.sh
# `make build` configures without tests: turn them on.
if grep -qs 'COMFYD_TESTS:BOOL=OFF' "build/$preset/CMakeCache.txt"; then
    rm -f "build/$preset/CMakeCache.txt" "build/$preset/build.ninja"
fi
COMFYD_CMAKE_FLAGS="-DCOMFYD_UNITY=ON ${COMFYD_CMAKE_FLAGS:-}" scripts/build.sh "$preset"
if [ ! -d tests/npm/node_modules ] || [ tests/npm/package-lock.json -nt tests/npm/node_modules/.package-lock.json ]; then
    if ! (cd tests/npm && npm ci --no-audit --no-fund --loglevel=error); then
        echo "make test: npm could not fetch the clients of tests/npm (its own words are above)." >&2
        echo "It needs the npm registry: look at \`npm ping\` and \`npm config get registry\`; behind a proxy set" >&2
        echo "HTTPS_PROXY, and for a certificate of your own NODE_EXTRA_CA_CERTS=FILE. All other tests run without it:" >&2
        echo "  ctest --test-dir build/$preset --output-on-failure --exclude-regex '^npm'" >&2
        exit 1
    fi
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
fuzz=
scratch=
shared=
clean_up() {
    [ -z "$fuzz" ] || kill -- "-$fuzz" 2>/dev/null || true
    [ -z "$shared" ] || rm -rf "$shared" || true
    [ -z "$scratch" ] || rm -rf "$scratch" || true
}
trap clean_up EXIT
# Tests make and remove very many files, which stay in memory where there is plenty of it and programs may be run from there.
gigabytes() { awk -v name="$1" '$1 == name ":" {print int($2 / 1024 / 1024)}' /proc/meminfo; }
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && [ "$(gigabytes MemAvailable)" -ge 12 ] &&
    [ "$(df --output=avail --block-size=1G /dev/shm | tail -1)" -ge 8 ]; then
    scratch=$(mktemp -d /dev/shm/t.XXXX)
    chmod 1777 "$scratch"
    printf '#!/bin/sh\n' >"$scratch/program"
    chmod +x "$scratch/program"
    ! "$scratch/program" 2>/dev/null || export TMPDIR=$scratch
fi
# What many tests begin with, which the first of them makes.
shared=$(mktemp -d "${TMPDIR:-/tmp}/shared.XXXX")
export COMFYD_TESTS_SHARED=$shared
# Many tests wait most of the time: four more run than there are cores; and in what they leave two rows of simulations, and
# the fuzzers, which are built first.
if [ "$preset" = release ]; then
    mkdir -p build/fuzz
    setsid nice -n 10 scripts/fuzz.sh --inputs 40000 >build/fuzz/test.log 2>&1 &
    fuzz=$!
fi
ctest --test-dir "build/$preset" --output-on-failure --parallel "$(($(nproc) + 6))" --timeout 600
if [ "$preset" = release ]; then
    echo "waiting for the fuzzers, which began with the tests (build/fuzz/test.log)"
    failed=0
    wait "$fuzz" || failed=1
    fuzz=
    cat build/fuzz/test.log
    exit $failed
fi
