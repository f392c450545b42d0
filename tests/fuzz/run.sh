#!/usr/bin/env bash
# Fuzzes one target with libFuzzer for a while.
#
# usage: tests/fuzz/run.sh NAME SECONDS [LIBFUZZER_OPTION...]
#
# Builds fuzz_NAME with clang in build-fuzz/. Inputs that reach new code are
# collected in build-fuzz/corpus/NAME, a crashing one in build-fuzz/crash/NAME.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# -lt 2 ] || [[ ! $2 =~ ^[0-9]+$ ]]; then
    echo "usage: $0 NAME SECONDS [LIBFUZZER_OPTION...]; NAME is one of:" >&2
    find "$top/tests/fuzz" -maxdepth 1 -name 'fuzz_*.c' |
        sed 's,.*/fuzz_,  ,; s,\.c$,,' | sort >&2
    exit 2
fi
name=$1
seconds=$2
shift 2
if [ ! -f "$top/tests/fuzz/fuzz_$name.c" ]; then
    echo "fuzz: no target '$name': tests/fuzz/fuzz_$name.c does not exist" >&2
    exit 2
fi
if ! command -v clang >/dev/null; then
    echo "fuzz: clang is missing: run examples/install-deps.sh --dev" >&2
    exit 77
fi

build=$top/build-fuzz
cmake -S "$top" -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang \
    -DCMAKE_BUILD_TYPE=Debug -DAKIN_FUZZ=ON -DAKIN_TESTS=OFF >/dev/null
cmake --build "$build" --target "fuzz_$name" -j 2

found=$build/corpus/$name
crash=$build/crash/$name
seeds=$top/tests/fuzz/corpus/$name
mkdir -p "$found" "$crash"
corpora=("$found")
[ ! -d "$seeds" ] || corpora+=("$seeds")
export AKIN_SANITIZE=Asan
exec "$top/tests/mpi/env.sh" "$build/tests/fuzz/fuzz_$name" \
    -max_total_time="$seconds" -timeout=20 -artifact_prefix="$crash/" \
    -print_final_stats=1 "$@" "${corpora[@]}"
