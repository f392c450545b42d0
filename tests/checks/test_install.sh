#!/usr/bin/env bash
# Installs a build into a scratch folder and builds a program against it, once
# with find_package and once with pkg-config.
#
# usage: tests/checks/test_install.sh BUILD_DIR
set -euo pipefail

build=${1:?usage: $0 BUILD_DIR}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

cache() {
    sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"
compiler=$(cache CMAKE_C_COMPILER)
case $(cache CMAKE_BUILD_TYPE) in
Asan) flags=-fsanitize=address,undefined ;;
Tsan) flags=-fsanitize=thread ;;
Ubsan) flags=-fsanitize=undefined ;;
*) flags= ;;
esac

mkdir "$scratch/consumer"
# Every installed header, so that one that needs a header left behind fails.
(cd "$prefix/include" && find akin -name '*.h' | sort |
    sed 's/.*/#include <&>/') >"$scratch/consumer/main.c"
cat >>"$scratch/consumer/main.c" <<'END'
#include <stdio.h>

int main(void)
{
    printf("%s %s\n", AKIN_VERSION, akin_status_string(AKIN_ERR_REFUSED));
    return 0;
}
END
cat >"$scratch/consumer/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(akin 0.1 REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE akin::akin)
END
version=$(cache CMAKE_PROJECT_VERSION)
failed=0

# expect NAME COMMAND...: the command prints the version and the status text.
expect() {
    local name=$1 out
    shift
    out=$("$@") || true
    if [ "$out" != "$version block refused" ]; then
        echo "$name: expected '$version block refused', got '$out'"
        failed=1
    fi
}

cmake -S "$scratch/consumer" -B "$scratch/by_cmake" -G Ninja \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/configure.log"
cmake --build "$scratch/by_cmake" >"$scratch/build.log" ||
    { cat "$scratch/build.log" && exit 1; }
expect find_package "$scratch/by_cmake/consumer"

pc=$(find "$prefix" -name akin.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
read -ra pc_flags < <(pkg-config --cflags --libs akin)
read -ra san_flags <<<"$flags"
# The whole archive is taken in, so that a missing library is noticed.
pc_flags=("${pc_flags[@]/#-lakin/-Wl,--whole-archive,-lakin,--no-whole-archive}")
"$compiler" -o "$scratch/by_pc" "$scratch/consumer/main.c" \
    "${san_flags[@]}" "${pc_flags[@]}"
expect pkg-config "$scratch/by_pc"

# The installed command runs from where it lies.
if [ -x "$prefix/bin/akin" ] &&
    ! "$prefix/bin/akin" --version 2>&1 | tee "$scratch/version" |
    grep -q "$version"; then
    echo "akin --version does not name $version:"
    cat "$scratch/version"
    failed=1
fi

[ $failed -eq 0 ] && echo "install: akin, find_package, pkg-config work"
exit $failed
