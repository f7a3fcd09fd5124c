#!/usr/bin/env bash
# Throws mutated input at every door through which foreign bytes come in, under AddressSanitizer and UBSan:
#   scripts/fuzz.sh [SECONDS]   (for each, default 60). A finding stops it and leaves its input in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
scripts/setup.sh build test
scripts/build.sh fuzz fuzz
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0}
run() { # NAME [SEED_FOLDER…]
    local name=$1
    shift
    mkdir -p "build/fuzz/corpus/$name"
    if ! (cd build/fuzz && ./fuzz-"$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 \
        -verbosity=0 -print_final_stats=1 "corpus/$name" "$@" >"$name.log" 2>&1); then
        cat "build/fuzz/$name.log" >&2
        exit 1
    fi
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") inputs, no finding"
}
run prompt "$PWD/tests/data/comfyui/validation"
run convert "$PWD/tests/data/ui-workflows/own"
run messages
run multipart
run binder "$PWD/tests/data/parameters"
