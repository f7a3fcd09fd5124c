#!/usr/bin/env bash
# Builds comfyd, starts it on a free port with the embedded engine, runs the examples that need no GPU through the public
# API, writes the pictures to out/ and stops it again. COMFYD names a binary to use instead of building one, OUT another
# folder.
set -euo pipefail
cd "$(dirname "$0")/.."
comfyd=${COMFYD:-build/release/comfyd}
out=${OUT:-$PWD/out}
if [ -z "${COMFYD:-}" ]; then
    echo "1/3 packages and build (only what is not there yet; the first time takes minutes)"
    make --no-print-directory build
fi

echo "2/3 starting comfyd"
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

echo "3/3 running the examples that need no GPU; those with a seed look different every time"
rm -rf "$out"
echo
# The table of examples/README.md says what each one shows and what it needs.
while IFS='|' read -r _ link sentence worker _; do
    [ "${worker// /}" = engine ] || continue
    name=$(sed -E 's/.*\[(.*)\.json\].*/\1/' <<<"$link")
    seed=()
    ! grep -q '"title": "seed"' "examples/$name.json" || seed=(--param seed=random)
    "$comfyd" run "examples/$name.json" "${seed[@]}" --url "$url" -o "$out" >"$data/files" 2>"$data/run" ||
        { cat "$data/run" >&2; exit 1; }
    printf '  %-26s %s\n' "$(basename "$(head -1 "$data/files")")" "$(sed -E 's/^ +| +$//g' <<<"$sentence")"
done < <(grep '^| \[' examples/README.md)
cat <<END

The pictures are in $out. Three commands to try next:

  make serve                                                            # leaves it running on http://127.0.0.1:8080
  build/release/comfyd run examples/landscape.json --param seed=random  # in another terminal: one more picture
  build/release/comfyd serve --worker http://127.0.0.1:8188             # with your ComfyUI behind it
END
