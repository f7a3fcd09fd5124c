#!/usr/bin/env bash
# Rules that the compiler does not check: which room may know which, where Beast may be included, coroutine style,
# formatting.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() {
    echo "check: $1" >&2
    failed=1
}

# A room includes only the rooms it links (CMakeLists.txt). jobs/job.hpp is the shared vocabulary; the ledger implements
# ports of other rooms and so includes their headers.
declare -A may=(
    [base]="base" [net]="base net" [workflow]="base workflow" [scheduler]="base scheduler"
    [simulate]="base scheduler simulate"
    [events]="base events" [jobs]="base jobs scheduler events" [ledger]="base jobs ledger assets notify"
    [assets]="base net assets" [engine]="base workflow engine" [comfy]="base net comfy"
    [fleet]="base net comfy workflow jobs assets fleet" [notify]="base net jobs notify" [auth]="base auth"
    [standalone]="base net comfy engine workflow standalone" [observe]="base observe" [api]="base net comfy jobs workflow events assets auth observe api"
)
for room in "${!may[@]}"; do
    while IFS=: read -r file included; do
        # Tests of a room may use what whole-program tests are written with.
        [[ "$file" == *test* && "$included" == support/* ]] && continue
        [[ " ${may[$room]} " == *" ${included%%/*} "* ]] || [ "$included" = jobs/job.hpp ] ||
            complain "$file includes $included: the room '$room' must not know '${included%%/*}'"
    done < <(grep -rhoH --include='*.?pp' '^#include "[a-z0-9_]*/[^"]*"' "src/$room" 2>/dev/null |
        sed -E 's/#include "([^"]+)"/\1/')
done

beast=$(grep -rl --include='*.cpp' --include='*.hpp' 'boost/beast' src | grep -v '^src/net/' || true)
[ -z "$beast" ] || complain "only src/net may include Beast: $beast"

# One co_await per statement, into a named variable: compilers get the other forms wrong.
while IFS= read -r line; do
    complain "co_await inside a condition or argument list: $line"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '(if|while|switch) \(.*co_await|\(co_await|, co_await|co_return co_await' src |
    grep -v '//' || true)

formatter=$(command -v clang-format-19 || command -v clang-format-18 || true)
if [ -n "$formatter" ]; then
    git ls-files 'src/*.?pp' 'tests/*.?pp' 'bench/*.?pp' | xargs -r "$formatter" --dry-run --Werror 2>/tmp/comfyd-format.$$ ||
        { head -20 "/tmp/comfyd-format.$$" >&2; complain "sources are not formatted: run make format"; }
    rm -f "/tmp/comfyd-format.$$"
fi
exit $failed
