#!/usr/bin/env bash
# Throws mutated input at every door through which foreign bytes come in, under AddressSanitizer and UBSan:
#   scripts/fuzz.sh [SECONDS]        for each, 60 where it is left out; every run tries others
#   scripts/fuzz.sh --inputs COUNT   for each, always the same ones, a twentieth over sockets: what `make test` does
# A finding stops it and leaves its input in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
    --inputs) how=(setarch -R) much=(-seed=1 -runs="$2") few=(-seed=1 -runs="$(($2 / 20))") keep=0 ;;
    *) how=() much=(-max_total_time="${1:-60}") few=("${much[@]}") keep=1 ;;
esac
scripts/setup.sh build test
COMFYD_CMAKE_FLAGS="-DCOMFYD_UNITY=ON ${COMFYD_CMAKE_FLAGS:-}" scripts/build.sh fuzz fuzz
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0}
run() { # NAME [SEED_FOLDER…]
    local name=$1
    shift
    [ "$keep" = 1 ] || rm -rf "build/fuzz/fresh/$name"
    local corpus=$([ "$keep" = 1 ] && echo corpus || echo fresh)/$name
    mkdir -p "build/fuzz/$corpus"
    if ! (cd build/fuzz && "${how[@]}" ./fuzz-"$name" "${much[@]}" -rss_limit_mb=2048 -timeout=10 -max_len=65536 \
        -verbosity=0 -print_final_stats=1 "$corpus" "$@" >"$name.log" 2>&1); then
        cat "build/fuzz/$name.log" >&2
        exit 1
    fi
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") inputs, no finding"
}
# As many at a time as there are processors.
pids=()
at_once() { # as run()
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do sleep 0.2; done
    run "$@" &
    pids+=($!)
}
at_once prompt "$PWD/tests/data/comfyui/validation"
at_once convert "$PWD/tests/data/ui-workflows/own"
at_once messages
at_once letter "$PWD/tests/data/letters"
at_once multipart
at_once binder "$PWD/tests/data/parameters"
at_once headers "$PWD/tests/data/pictures"
at_once s3 "$PWD/tests/data/s3-answers"
at_once table "$PWD/examples"
at_once url
at_once jwt "$PWD/tests/data/tokens"
at_once proxy_line
at_once safetensors "$PWD/tests/data/safetensors"
much=("${few[@]}") # each is a connection
at_once websocket "$PWD/tests/data/fuzz/websocket"
at_once request "$PWD/tests/data/fuzz/request"
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
