#!/usr/bin/env bash
# Runs the tests that ask a real API server of Kubernetes (tests/kubernetes), which is built first where it is not there.
# Arguments go to the test program; COMFYD_RECORD=1 writes down anew what `make test` replays (tests/data/providers/kubernetes).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/kubernetes
scripts/setup.sh build test kubernetes
if [ ! -x "$folder/kube-apiserver" ]; then
    echo "building kube-apiserver from Debian's source, some minutes ($folder/build.log)"
    mkdir -p "$folder"
    tests/kubernetes/build_server.sh "$folder" >"$folder/build.log" 2>&1 || { tail -n 30 "$folder/build.log" >&2; exit 1; }
fi
COMFYD_CMAKE_FLAGS="-DCOMFYD_UNITY=ON ${COMFYD_CMAKE_FLAGS:-}" scripts/build.sh release kubernetes_test
exec build/release/tests/kubernetes/kubernetes_test "$@"
