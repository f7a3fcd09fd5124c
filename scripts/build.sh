#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh release [target…]. Does nothing that is done already.
# Shows one line of progress; what compilers say is in build/PRESET/build.log, and here when the build fails.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset
compiler=$(command -v clang++-19 || command -v clang++-18 || true)
[ -n "$compiler" ] || { echo "clang++-19 is missing: run scripts/setup.sh build" >&2; exit 1; }
mkdir -p "$folder"
if [ ! -f "$folder/build.ninja" ]; then
    echo "configuring $folder"
    cmake --preset "$preset" -DCMAKE_CXX_COMPILER="$compiler" ${COMFYD_CMAKE_FLAGS:-} >"$folder/configure.log" ||
        { cat "$folder/configure.log" >&2; exit 1; }
elif grep -qs 'COMFYD_UNITY:BOOL=ON' "$folder/CMakeCache.txt"; then
    # Which files can be compiled together depends on what is in them.
    cmake "$folder" >"$folder/configure.log" || { cat "$folder/configure.log" >&2; exit 1; }
fi

# ninja's own estimate of the time that is left came with 1.12; Debian 12 has 1.11.
show_progress() {
    awk -v terminal="$([ -t 1 ] && echo 1 || echo 0)" -v folder="$folder" -v cores="$(nproc)" '
        function plural(count, word) { return count " " word (count == 1 ? "" : "s") }
        /^@[0-9]+@[0-9]+@[0-9.]+@/ {
            split($0, part, "@")
            done = part[2]; all = part[3]; seconds = part[4]
            percent = int(100 * done / all)
            # A file takes about a second of one core, and up to half a gigabyte of memory.
            if (!announced && all > 10) {
                announced = 1
                print "building " folder ": " all " steps, about " plural(int(all / cores / 60) + 1, "minute") " on " plural(cores, "core")
                fflush()
            }
            left = done > 20 && done < all ? seconds / done * (all - done) : -1
            text = sprintf("  %3d %%  %d of %d", percent, done, all)
            if (left >= 0) text = text (left < 60 ? ", less than a minute left" : sprintf(", about %d min left", left / 60 + 0.5))
            if (terminal) { printf "\r\033[K%s", text; fflush() }
            else if (all > 10 && int(percent / 10) > shown) { shown = int(percent / 10); print text; fflush() }
            any = 1
        }
        END { if (terminal && any) printf "\r\033[K" }'
}
if ! NINJA_STATUS='@%f@%t@%e@ ' ninja -C "$folder" "$@" 2>&1 | tee "$folder/build.log" | show_progress; then
    echo "the build failed; all of its output is in $folder/build.log" >&2
    # The line after "FAILED:" is the whole command.
    grep -v '^@' "$folder/build.log" | awk '/^FAILED: /{failed = 1; print; getline; next} failed' | head -100 >&2
    exit 1
fi
