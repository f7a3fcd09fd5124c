#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt that are not there yet.
#   scripts/setup.sh build        what building and running needs
#   scripts/setup.sh build test   also what `make test` needs
# Asks for sudo only when something is missing and it is not run by root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

installed() { [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

# A command that is already there, however it came, makes its package unnecessary (node from another source, say).
provided() {
    case "$1" in
        nodejs) command -v node >/dev/null ;;
        npm) command -v npm >/dev/null ;;
        *) return 1 ;;
    esac
}

wanted=()
for group in "$@"; do
    while read -r kind names; do
        [ "$kind" = "$group" ] || continue
        found=
        IFS='|' read -ra alternatives <<<"$names"
        for name in "${alternatives[@]}"; do
            if installed "$name" || provided "$name"; then
                found=yes
                break
            fi
        done
        [ -n "$found" ] || wanted+=("$names")
    done < <(grep -v '^#' "$here/packages.txt")
done
[ ${#wanted[@]} -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
echo "installing ${#wanted[@]} Debian packages, some minutes: ${wanted[*]}"
"${as_root[@]}" apt-get update -qq
packages=()
for names in "${wanted[@]}"; do
    IFS='|' read -ra alternatives <<<"$names"
    chosen=
    for name in "${alternatives[@]}"; do
        if [ "$(apt-cache policy "$name" | awk '/Candidate:/ {print $2}')" != "(none)" ] &&
            apt-cache show "$name" >/dev/null 2>&1; then
            chosen=$name
            break
        fi
    done
    [ -n "$chosen" ] || { echo "none of ${names//|/, } is to be had from this distribution" >&2; exit 1; }
    packages+=("$chosen")
done
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
echo "the packages are installed"
