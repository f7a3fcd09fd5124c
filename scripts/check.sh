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

# A room includes only the rooms that the table lets it know. jobs/job.hpp is the shared vocabulary.
declare -A may=()
while read -r room knows; do may[$room]="$room $knows"; done < <(scripts/rooms.sh)
for folder in src/*/; do
    room=$(basename "$folder")
    [ -n "${may[$room]:-}" ] || complain "src/$room is not in src/rooms.txt"
done
for room in "${!may[@]}"; do
    while IFS=: read -r file included; do
        # Tests of a room may use what whole-program tests are written with.
        [[ "$file" == *test* && "$included" == support/* ]] && continue
        [[ " ${may[$room]} " == *" ${included%%/*} "* ]] || [ "$included" = jobs/job.hpp ] ||
            complain "$file includes $included: the room '$room' must not know '${included%%/*}'"
    done < <(grep -rhoH --include='*.?pp' '^#include "[a-z0-9_]*/[^"]*"' "src/$room" 2>/dev/null |
        sed -E 's/#include "([^"]+)"/\1/')
done

scripts/rooms.sh --markdown | while IFS= read -r row; do
    grep -qxF "$row" docs/architecture.md || { echo "$row"; break; }
done | grep -q . && complain "docs/architecture.md does not show src/rooms.txt: run scripts/rooms.sh --write"

beast=$(grep -rl --include='*.cpp' --include='*.hpp' 'boost/beast' src | grep -v '^src/net/' || true)
[ -z "$beast" ] || complain "only src/net may include Beast: $beast"

# Pages name files by their place in src.
while IFS=: read -r page file; do
    [ -f "src/$file" ] || [ -f "$file" ] || complain "$page names $file, which is not there"
done < <(grep -oE '`[a-z_]+/[a-z_0-9/]+\.[ch]pp`' ./*.md docs/*.md | tr -d '`')

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
