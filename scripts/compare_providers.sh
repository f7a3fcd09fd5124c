#!/usr/bin/env bash
# Compares what clouds really answer with what comfyd expects (tests/data/providers), for a person who has keys.
# It only asks: nothing is rented, nothing is changed, and no answer is shown, only what is wrong with its shape.
#
#   RUNPOD_API_KEY=… NOVITA_API_KEY=… VAST_API_KEY=… scripts/compare_providers.sh
#   SALAD_API_KEY=… SALAD_ORGANIZATION=… SALAD_PROJECT=… scripts/compare_providers.sh
#
# RUNPOD_URL, NOVITA_URL, VAST_URL and SALAD_URL name another address. Exits with 1 when something differs, with 2 when no key
# is given.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v jq >/dev/null || { echo "compare: jq is missing" >&2; exit 2; }
command -v curl >/dev/null || { echo "compare: curl is missing" >&2; exit 2; }
differs=0
asked=0

# check CONTRACT ROUTE: the answer on stdin; prints each difference.
check() {
    jq -r --slurpfile contract "tests/data/providers/$1.json" --arg route "$2" '
        $contract[0] as $c
        | def shape: if has("$") then $c.shapes[.["$"]] else . end;
          def kind: if type == "number" then (if . == floor then "integer" else "number" end) else type end;
          def wrong($s; $at):
            ($s | shape) as $s
            | kind as $k
            | ([$s.type] | flatten | map(select(. != null))) as $types
            | if ($types | length) > 0 and ($types | any(. == $k or (. == "number" and $k == "integer")) | not)
              then "\($at): is \($k), expected \($types | join(" or "))"
              elif $s.enum and (. as $v | $s.enum | any(. == $v) | not) then "\($at): has a value that is not among \($s.enum | join(", "))"
              elif type == "object" then
                (. as $o | ($s.required // [])[] | select(. as $n | $o | has($n) | not) | "\($at): \(.) is missing"),
                (to_entries[] | .key as $n | (($s.properties // {})[$n] // $s.values // empty) as $m
                    | .value | wrong($m; "\($at).\($n)"))
              elif type == "array" and $s.items then .[] | wrong($s.items; "\($at)[]")
              else empty end;
          ($c.routes[] | select(.name == $route) | .answer // empty) as $answer
          | wrong($answer; "$")' | sort | uniq -c
}

# compare CONTRACT URL HEADER ROUTE PATH [BODY]: with a body it is a search, which is asked by POST.
compare() {
    local answer status body found
    local -a with=()
    [ $# -lt 6 ] || with=(-H 'Content-Type: application/json' -d "$6")
    asked=$((asked + 1))
    # The key goes in by a file descriptor: the arguments of a program can be seen by others.
    answer=$(curl -sS -m 60 -w '\n%{http_code}' -H @<(printf '%s' "$3") ${with[@]+"${with[@]}"} "$2$5") || {
        echo "$1 $5: cannot be asked"
        differs=1
        return
    }
    status=${answer##*$'\n'}
    body=${answer%$'\n'*}
    if [ "$status" != 200 ]; then
        echo "$1 $5: answers $status"
        differs=1
    elif ! found=$(check "$1" "$4" <<<"$body" 2>&1); then
        echo "$1 $5: is not JSON, or of another form"
        differs=1
    elif [ -n "$found" ]; then
        echo "$1 $5: differs"
        printf '%s\n' "$found"
        differs=1
    else
        echo "$1 $5: as expected"
    fi
}

if [ -n "${RUNPOD_API_KEY:-}" ]; then
    url=${RUNPOD_URL:-https://api.runpod.io/v2}
    header="Authorization: Bearer $RUNPOD_API_KEY"
    compare runpod "$url" "$header" gpus '/catalog/gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE'
    compare runpod "$url" "$header" list /pods
fi
if [ -n "${NOVITA_API_KEY:-}" ]; then
    url=${NOVITA_URL:-https://api.novita.ai/gpus/v2}
    header="Authorization: Bearer $NOVITA_API_KEY"
    compare novita "$url" "$header" products /products
    compare novita "$url" "$header" regions /regions
    compare novita "$url" "$header" list '/instances?limit=100'
fi
if [ -n "${VAST_API_KEY:-}" ]; then
    url=${VAST_URL:-https://console.vast.ai/api}
    header="Authorization: Bearer $VAST_API_KEY"
    compare vast "$url" "$header" list '/v1/instances/?limit=25'
    compare vast "$url" "$header" search /v0/bundles/ \
        '{"type": "ondemand", "num_gpus": {"eq": 1}, "gpu_name": {"in": ["RTX 4090"]}, "limit": 5}'
fi
if [ -n "${SALAD_API_KEY:-}" ]; then
    url=${SALAD_URL:-https://api.salad.com/api/public}
    header="Salad-Api-Key: $SALAD_API_KEY"
    organization=/organizations/${SALAD_ORGANIZATION:?is missing}
    compare salad "$url" "$header" classes "$organization/gpu-classes"
    compare salad "$url" "$header" list "$organization/projects/${SALAD_PROJECT:?is missing}/containers"
fi
if [ "$asked" = 0 ]; then
    echo "compare: give RUNPOD_API_KEY, NOVITA_API_KEY, VAST_API_KEY or SALAD_API_KEY" >&2
    exit 2
fi
exit "$differs"
