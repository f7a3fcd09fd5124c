#!/usr/bin/env bash
# The table of rooms (src/rooms.txt), for other scripts and for docs/architecture.md:
#   scripts/rooms.sh             one line a room: its name, then the rooms that it may know
#   scripts/rooms.sh --markdown  the table as the documentation shows it
#   scripts/rooms.sh --write     puts that table into docs/architecture.md
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/architecture.md
rows() { grep -v '^#' src/rooms.txt | sed -E 's/ *\| */|/g'; }
markdown() {
    echo '| room | owns | may know beside `base` |'
    echo '|---|---|---|'
    rows | while IFS='|' read -r room knows owns; do echo "| \`$room\` | $owns | ${knows// /, } |"; done
}
case "${1:-}" in
    '') rows | while IFS='|' read -r room knows _; do echo "$room base $knows"; done ;;
    --markdown) markdown ;;
    --write)
        table=$(markdown)
        awk -v table="$table" '
            /^\| room \| owns \|/ { print table; skipping = 1; next }
            skipping && /^\|/ { next }
            { skipping = 0; print }' "$page" >"$page.new"
        mv "$page.new" "$page"
        ;;
    *) sed -n '2,5p' "$0" >&2; exit 2 ;;
esac
