#!/usr/bin/env bash
# Whole-system benchmarks on this machine; prints one line per figure. Load driver, workers and comfyd share its cores.
#   scripts/bench.sh [submit|overhead|utilisation|status|memory|streams|load|listeners|soak|placement|nodes|media|webhooks|results|cluster]…
#   (default: all but soak, which takes SOAK_SECONDS, ten minutes)
# With COMFYUI_URL=http://host:8188 the nodes of that server are timed beside the engine's.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build test bench
if grep -qs 'COMFYD_TESTS:BOOL=OFF' build/release/CMakeCache.txt; then rm -f build/release/CMakeCache.txt build/release/build.ninja; fi
scripts/build.sh release comfyd comfy-double bench-driver bench-nodes
build=build/release
seconds=${BENCH_SECONDS:-10}
wanted=" ${*:-submit status memory streams load listeners overhead utilisation placement nodes media webhooks results cluster} "
work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

start() { # NAME COMMAND… -> urls in $work/NAME.out, process id in $last
    local name=$1
    shift
    "$@" >"$work/$name.out" 2>"$work/$name.err" &
    last=$!
    pids+=("$last")
    for _ in $(seq 300); do grep -q '^listening on' "$work/$name.out" && return; sleep 0.1; done
    cat "$work/$name.err" >&2
    exit 1
}
stop() { kill -9 "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; }
url_of() { sed -n 's/^listening on //p' "$work/$1.out" | head -1; }
rss_mb() { awk '/VmRSS/ {printf "%.1f", $2 / 1024}' "/proc/$1/status"; }
serve() { local name=$1; shift; start "$name" "$build/comfyd" serve --listen 127.0.0.1:0 --data "$work/$name" --log-level warning "$@"; }

echo "machine: $(nproc) cores, $(awk -F: '/model name/ {print $2; exit}' /proc/cpuinfo | sed 's/^ //')"

if [[ $wanted == *" submit "* ]]; then
    serve submit --no-engine
    ulimit -n "$(ulimit -Hn)"
    for connections in 1 64; do
        wrk -t1 -c$connections -d"${seconds}s" --latency -s bench/submit.lua "$(url_of submit)" | sed -n "s/^RESULT/submit connections=$connections/p"
    done
    stop "$last"
fi
if [[ $wanted == *" status "* ]]; then
    serve status
    id=$(curl -fsS "$(url_of status)/api/v2/jobs" -d "{\"workflow\": $(cat bench/blend.json)}" | sed -E 's/.*"id": ?"([^"]+)".*/\1/')
    sleep 1
    wrk -t1 -c64 -d"${seconds}s" --latency -s bench/report.lua "$(url_of status)/api/v2/jobs/$id" | sed -n 's/^RESULT/status/p'
    wrk -t1 -c64 -d"${seconds}s" --latency -s bench/report.lua "$(url_of status)/healthz" | sed -n 's/^RESULT/healthz/p'
    stop "$last"
fi
if [[ $wanted == *" memory "* ]]; then
    serve memory --no-engine
    empty=$(rss_mb "$last")
    while :; do
        wrk -t1 -c64 -d1s -s bench/submit.lua "$(url_of memory)" >/dev/null
        queued=$(curl -fsS "$(url_of memory)/api/v1/queue/metrics" | sed -E 's/.*"pending_tasks": ?([0-9]+).*/\1/')
        [ "$queued" -lt 100000 ] || break
    done
    sleep 2
    echo "memory empty_mb=$empty queued=$queued rss_mb=$(rss_mb "$last")"
    stop "$last"
fi
if [[ $wanted == *" streams "* ]]; then
    serve streams --no-engine
    ulimit -n "$(ulimit -Hn)"
    id=$(curl -fsS "$(url_of streams)/api/v2/jobs" -d "{\"workflow\": $(cat bench/blend.json)}" | sed -E 's/.*"id": ?"([^"]+)".*/\1/')
    before=$(rss_mb "$last")
    mkfifo "$work/hold"
    "$build/bench-driver" streams "$(url_of streams)" "$id" 10000 <"$work/hold" >"$work/streams.count" &
    driver=$!
    exec 9>"$work/hold"
    for _ in $(seq 600); do grep -q '^open=' "$work/streams.count" && break; sleep 0.1; done
    echo "streams $(cat "$work/streams.count") before_mb=$before rss_mb=$(rss_mb "$last")"
    exec 9>&-
    wait "$driver" || true
    stop "$last"
fi
if [[ $wanted == *" load "* ]]; then
    start watched "$build/comfy-double" --count 8 --delay-ms 100
    workers=$last
    mapfile -t urls < <(sed -n 's/^listening on //p' "$work/watched.out")
    serve load --no-engine "${urls[@]/#/--worker=}"
    ulimit -n "$(ulimit -Hn)"
    echo "load $("$build/bench-driver" load "$(url_of load)" "$last" 5000 500 "${LOAD_SECONDS:-60}")"
    stop "$last"
    stop "$workers"
fi
if [[ $wanted == *" listeners "* ]]; then
    start told "$build/comfy-double" --count 64 --delay-ms 50
    workers=$last
    mapfile -t urls < <(sed -n 's/^listening on //p' "$work/told.out")
    serve listeners --no-engine "${urls[@]/#/--worker=}"
    ulimit -n "$(ulimit -Hn)"
    sleep 3
    # Accepted, started, ended: three changes a job.
    echo "listeners $("$build/bench-driver" listeners "$(url_of listeners)" "$last" 5000 334 "${LOAD_SECONDS:-20}")"
    stop "$last"
    stop "$workers"
fi
if [[ $wanted == *" soak "* ]]; then
    # Fewer than the workers can run, and jobs are kept for a minute: what is there at a time stays the same.
    start steady "$build/comfy-double" --count 8 --delay-ms 50
    workers=$last
    mapfile -t urls < <(sed -n 's/^listening on //p' "$work/steady.out")
    serve soak --no-engine --set retention_days=0.0007 "${urls[@]/#/--worker=}"
    ulimit -n "$(ulimit -Hn)"
    "$build/bench-driver" load "$(url_of soak)" "$last" 200 50 "${SOAK_SECONDS:-600}" | sed 's/^/soak /'
    stop "$last"
    stop "$workers"
fi
if [[ $wanted == *" overhead "* ]]; then
    start worker "$build/comfy-double"
    worker=$last
    serve overhead --no-engine --worker "$(url_of worker)"
    sleep 1
    echo "overhead $("$build/bench-driver" overhead "$(url_of overhead)" "$(url_of worker)" 500)"
    stop "$last"
    stop "$worker"
fi
if [[ $wanted == *" utilisation "* ]]; then
    start fleet "$build/comfy-double" --count 64 --delay-ms 50
    fleet=$last
    flags=()
    while read -r url; do flags+=(--worker "$url"); done < <(sed -n 's/^listening on //p' "$work/fleet.out")
    serve utilisation --no-engine "${flags[@]}"
    sleep 3
    echo "utilisation $("$build/bench-driver" utilisation "$(url_of utilisation)" 64 50 5000)"
    stop "$last"
    stop "$fleet"
fi
if [[ $wanted == *" placement "* ]]; then
    names=()
    for i in $(seq 0 19); do names+=(--model "model-$i.safetensors"); done
    for policy in finish-time score fifo pressure; do
        start "models-$policy" "$build/comfy-double" --count 8 --delay-ms 28 --load-ms 560 "${names[@]}"
        fleet=$last
        mapfile -t urls < <(sed -n 's/^listening on //p' "$work/models-$policy.out")
        asked=pressure # SwarmUI's rule needs no comfyd
        if [ $policy != pressure ]; then
            serve "placement-$policy" --no-engine --set scheduler.policy=$policy "${urls[@]/#/--worker=}"
            asked=$(url_of "placement-$policy")
            sleep 2
        fi
        echo "placement policy=$policy $("$build/bench-driver" placement "$asked" 28 560 20 2000 "${urls[@]}")"
        stop "$last"
        stop "$fleet"
    done
fi
if [[ $wanted == *" nodes "* ]]; then
    start engine "$build/comfyd" engine --listen 127.0.0.1:0 --data "$work/engine"
    "$build/bench-nodes" "$(url_of engine)" >"$work/nodes.ours"
    stop "$last"
    : >"$work/nodes.theirs"
    [ -z "${COMFYUI_URL:-}" ] || "$build/bench-nodes" "$COMFYUI_URL" >"$work/nodes.theirs"
    awk 'NR == FNR {theirs[$2] = $3; next}
         $2 in theirs {printf "%s %s ms=%.3f comfyui_ms=%.3f ratio=%.1f\n", $1, $2, $3, theirs[$2], theirs[$2] / $3; next}
         {printf "%s %s ms=%.3f\n", $1, $2, $3}' "$work/nodes.theirs" "$work/nodes.ours"
fi
if [[ $wanted == *" webhooks "* ]]; then
    scripts/build.sh release bench-webhooks
    "$build/bench-webhooks" 50000
fi
if [[ $wanted == *" results "* ]]; then
    scripts/build.sh release bench-results
    "$build/bench-results" 1024
fi
if [[ $wanted == *" media "* ]]; then
    scripts/build.sh release bench-media
    mkdir "$work/media" "$work/plain"
    echo "media $("$build/bench-media" plain "$work/plain" 20000)"
    echo "media comfyd $("$build/bench-media" thumbnails "$build/comfyd" "$work/media" "$(nproc)" "$seconds")"
    # The same picture and sizes, as many at a time; a process for each picture, which is how it is used. By the full name:
    # what else is called "convert" is another program.
    convert=/usr/bin/convert
    version=$("$convert" -version | sed -n 's/^Version: ImageMagick \([^ ]*\).*/\1/p')
    [ -n "$version" ] || { echo "$convert is not ImageMagick's" >&2; exit 1; }
    thumbnails='"$0" "$1/source.png" -quality 80 -define webp:method=2 \
        \( +clone -thumbnail "1024x1024>" -write "$1/$2-1024.webp" +delete \) \
        \( +clone -thumbnail "512x512>" -write "$1/$2-512.webp" +delete \) -thumbnail "256x256>" "$1/$2-256.webp"'
    pictures=$((seconds * 8))
    begun=$(date +%s.%N)
    seq $pictures | xargs -P "$(nproc)" -I{} sh -c "$thumbnails" "$convert" "$work/media" {}
    ended=$(date +%s.%N)
    made=$(find "$work/media" -name '*.webp' -size +0 | wc -l)
    [ "$made" -eq $((3 * pictures)) ] || { echo "convert made $made thumbnails of $((3 * pictures))" >&2; exit 1; }
    awk -v n="$made" -v a="$begun" -v b="$ended" -v v="$version" \
        'BEGIN {printf "media convert thumbnails_per_s=%.1f pictures=%d version=%s\n", n / (b - a), n / 3, v}'
fi
if [[ $wanted == *" cluster "* ]]; then
    scripts/build.sh release bench-takeover bench-outage bench-relay
    programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
    free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
    apart=() # PostgreSQL refuses to run as root
    if [ "$(id -u)" = 0 ]; then apart=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
    mkdir "$work/postgres"
    chmod 755 "$work"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$work/postgres"
    "${apart[@]}" "$programs/initdb" -D "$work/postgres/data" -A trust -U postgres --no-locale -E UTF8 >/dev/null
    database_port=$(free_port)
    "${apart[@]}" "$programs/postgres" -D "$work/postgres/data" -p "$database_port" -k "$work/postgres" \
        -c listen_addresses=127.0.0.1 -c max_wal_size=4GB 2>"$work/postgres.err" &
    pids+=($!)
    redis_port=$(free_port)
    redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no --dir "$work" >/dev/null &
    pids+=($!)
    until "$programs/pg_isready" -q -h 127.0.0.1 -p "$database_port"; do sleep 0.1; done
    node() {
        serve "$1" --ledger "postgres://postgres@127.0.0.1:$database_port/postgres" \
            --events "redis://127.0.0.1:$redis_port" --set cluster.secret=0123456789abcdef0123456789abcdef \
            --set "cluster.files=$work/files"
    }
    load() { # NAME NODE CONNECTIONS
        wrk -t1 -c"$3" -d"${seconds}s" --latency -s bench/submit.lua "$(url_of "$2")" | sed -n "s/^RESULT/accept $1 connections=$3/p"
    }
    ulimit -n "$(ulimit -Hn)"
    serve alone --no-engine
    load sqlite alone 64
    stop "$last"
    node first
    load postgres first 64
    node second
    load two-nodes first 32 &
    load two-nodes second 32
    wait $!
    "$build/bench-takeover" 10000 5
    "$build/bench-outage" 5 3
    "$build/bench-relay" 200 30
fi
