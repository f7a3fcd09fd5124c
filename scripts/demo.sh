#!/usr/bin/env bash
# Starts comfyd on a free port with the embedded engine, runs the example workflows through the public API, writes the
# pictures to out/ and stops it again.
set -euo pipefail
cd "$(dirname "$0")/.."
comfyd=${COMFYD:-build/release/comfyd}
data=$(mktemp -d)
log=$data/comfyd.log
"$comfyd" serve --listen 127.0.0.1:0 --data "$data/data" >"$data/stdout" 2>"$log" &
server=$!
cleanup() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$data"
}
trap cleanup EXIT
for _ in $(seq 300); do
    grep -q '^listening on ' "$data/stdout" && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$data/stdout")
[ -n "$url" ] || { echo "comfyd did not start:" >&2; cat "$log" >&2; exit 1; }
echo "comfyd runs at $url"

rm -rf out
for workflow in examples/*.json; do
    echo "running $workflow"
    "$comfyd" run "$workflow" --url "$url" -o out
done
echo
echo "The pictures are in $PWD/out:"
ls -1 out
echo "To keep comfyd running, start it with: make serve"
echo "and open http://127.0.0.1:8080 (API reference: http://127.0.0.1:8080/docs)"
