#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh release [target…]. Does nothing that is done already.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
compiler=$(command -v clang++-19 || command -v clang++-18 || true)
[ -n "$compiler" ] || { echo "clang++-19 is missing: run scripts/setup.sh build" >&2; exit 1; }
if [ ! -f "build/$preset/build.ninja" ]; then
    cmake --preset "$preset" -DCMAKE_CXX_COMPILER="$compiler" ${COMFYD_CMAKE_FLAGS:-} >"/tmp/comfyd-cmake.$$" ||
        { cat "/tmp/comfyd-cmake.$$" >&2; exit 1; }
    rm -f "/tmp/comfyd-cmake.$$"
fi
exec cmake --build "build/$preset" -- "$@"
