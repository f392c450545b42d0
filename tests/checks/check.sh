#!/usr/bin/env bash
# Checks of the sources: form, static analysis, layers, headers, texts.
#
# usage: tests/checks/check.sh [--build DIR] [CHECK...]
#   format    clang-format finds nothing to change
#   tidy      clang-tidy, with the checks of .clang-tidy
#   cppcheck  cppcheck: warnings, performance, portability
#   layers    every include follows the arrows between the layers
#   headers   every header compiles alone, as C and as C++
#   comments  every file opens with a comment that says its job
#   licence   LICENSE, CMake and pkg-config name the same licence
#   words     no leftovers of work in progress, no places outside the tree
#   length    files stay under 1,000 lines (a warning from 400 on)
#   shell     shellcheck, or at least bash -n
# Without CHECK all of them run. --build names a configured build folder, for
# compile_commands.json and the generated headers (default: build-test).
#
# Exit code 77: a tool is missing here. With CI set that is a failure.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
build="build-test"
all=(format tidy cppcheck layers headers comments licence words length shell)
jobs=$(nproc 2>/dev/null || echo 2)

# files PATTERN...: the project's files of these names, one per line.
files() {
    local names=() pattern
    for pattern in "$@"; do
        names+=(-o -name "$pattern")
    done
    find . \( -name .git -o -path './build*' -o -path ./tests/fixtures \
        -o -path '*/corpus' \) -prune -o -type f \
        \( "${names[@]:1}" \) -print | sed 's,^\./,,' | sort
}

scripts() {
    files '*.sh'
    [ ! -f .ci/run ] || echo .ci/run
}

# need TOOL: ends the check as skipped if the tool is missing.
need() {
    command -v "$1" >/dev/null && return
    echo "$1 is missing: run examples/install-deps.sh --dev"
    [ -z "${CI:-}" ] || exit 1
    exit 77
}

# need_build: ends the check if there is no configured build folder.
need_build() {
    [ -f "$build/compile_commands.json" ] && return
    echo "$build is no build folder: name one with --build"
    exit 1
}

check_format() {
    need clang-format
    local bad
    bad=$(files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror 2>&1 |
        sed -n 's/: error: code should be clang-formatted.*//p' |
        cut -d: -f1,2 | sort -u -t: -k1,1)
    [ -z "$bad" ] && return
    echo "$bad"
    echo "run clang-format -i on these files (first place shown)"
    return 1
}

# The sources that this build compiles and that belong to the project.
compiled() {
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' \
        "$build/compile_commands.json" | grep "^$top/" |
        grep -v "^$(realpath "$build")/" | sort -u
}

# tidy_one FILE: clang-tidy on one file per process, because with several the
# analyzer carries the state of a va_list from one over to the next.
tidy_one() {
    local file=$1 args=(--quiet -p "$tidy_build") out code=0
    # Assertions stay in, since they tell the analyzer what cannot happen.
    args+=(--extra-arg=-Wno-unknown-warning-option
        --extra-arg=-Wno-ignored-optimization-argument --extra-arg=-UNDEBUG)
    # The file that defines what analyzer.h replaces cannot be read with it.
    if [[ $file != */runtime/base/error.c && $file != */tests/* ]]; then
        args+=("--extra-arg=-include$PWD/tests/checks/analyzer.h")
    fi
    out=$(clang-tidy "${args[@]}" "$file" 2>&1) || code=1
    # With no finding there is only the count of suppressed ones.
    [ $code -eq 0 ] || grep -vE '^([0-9]+ warnings|Suppressed|$)' <<<"$out"
    return $code
}

check_tidy() {
    need clang-tidy
    need_build
    tidy_build=$build
    export tidy_build
    export -f tidy_one
    compiled | xargs -r -P "$jobs" -I{} bash -c 'tidy_one {}'
}

check_cppcheck() {
    need cppcheck
    need_build
    # Values are left to clang's analyzer, which follows them through a status.
    compiled | cppcheck --quiet --file-list=- --language=c --std=c11 \
        -j "$jobs" --enable=warning,performance,portability \
        --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem \
        --suppress=unmatchedSuppression --suppress=readdirCalled \
        --suppress=ttynameCalled --suppress=autoVariables \
        --suppress=uninitvar --suppress=invalidFunctionArg --library=posix \
        --library=tests/checks/cppcheck.cfg -D__x86_64__=1 \
        -D_GNU_SOURCE -I runtime -I . -I "$build/generated"
}

check_layers() {
    tests/checks/layers.sh
}

# header_alone FILE: compiles a header with nothing before it; as C++ only
# the public ones of the library: those that declare a name of the akin_ API.
header_alone() {
    local file=$1 flags
    read -ra flags <<<"$header_flags"
    flags+=(-Wall -Wextra -Werror -Wno-psabi -fsyntax-only -include "$file" -)
    if ! echo 'typedef int translation_unit_t;' |
        gcc -x c -std=c11 -Wpedantic "${flags[@]}"; then
        echo "$file does not compile alone as C"
        return 1
    fi
    if [[ $file == launch/* ]] || ! grep -qE "$header_public" "$file"; then
        return 0
    fi
    if ! echo 'typedef int translation_unit_t;' |
        g++ -x c++ -std=c++17 "${flags[@]}"; then
        echo "$file does not compile alone as C++"
        return 1
    fi
    if grep -qE '^[a-z].*\bakin_[a-z0-9_]+\(|^akin_[a-z0-9_]+\(' "$file" &&
        ! grep -q 'extern "C"' "$file"; then
        echo "$file declares akin_ functions without extern \"C\""
        return 1
    fi
}

check_headers() {
    need gcc
    need g++
    need pkg-config
    need_build
    # The flags of a real compilation know where MPI, UCX and the others lie.
    header_flags="-D_GNU_SOURCE -Iruntime -I. -I$build/generated"
    header_flags+=" $(sed -n 's/^ *"command": "\(.*\)",\{0,1\}$/\1/p' \
        "$build/compile_commands.json" | tr ' ' '\n' |
        grep -A1 '^-isystem' | grep -v '^-' | sort -u |
        sed '/^$/d; s/^/-isystem /' | tr '\n' ' ')"
    header_public='^} akin_|^typedef .*[ *]akin_[a-z0-9_]+;'
    header_public+='|^([a-z].*[ *])?akin_[a-z0-9_]+\('
    export header_flags header_public
    export -f header_alone
    # A *_body.h is included once per variant, after what makes the variant.
    { files '*.h' | grep -v '_body\.h$' && (cd "$build" && find generated -name '*.h' \
        -printf "$build/%p\n"); } | grep -v '^tests/' |
        xargs -r -P "$jobs" -I{} bash -c 'header_alone {}'
}

check_comments() {
    local bad=0
    files '*.c' '*.h' | xargs -r awk '
        FNR == 1 && !/^\/\* [A-Za-z]/ {
            print FILENAME ":1: does not open with a comment on its job"
            bad = 1
        }
        /(^|[;{}),])[ \t]*\/\// {
            print FILENAME ":" FNR ": comments are written /* like this */"
            bad = 1
        }
        END { exit bad }' || bad=1
    scripts | xargs -r awk '
        FNR == 2 && !/^# [A-Za-z]/ {
            print FILENAME ":2: does not open with a comment on its job"
            bad = 1
        }
        END { exit bad }' || bad=1
    return $bad
}

check_licence() {
    local name=BSD-3-Clause bad=0
    if ! head -n 1 LICENSE 2>/dev/null | grep -qx 'BSD 3-Clause License'; then
        echo "LICENSE is missing or not the BSD 3-Clause License"
        bad=1
    fi
    # Fingerprints of the three clauses and of the disclaimer.
    local words
    for words in 'Redistributions of source code must retain' \
        'Redistributions in binary form must reproduce' \
        'Neither the name of the copyright holder' \
        'ARE DISCLAIMED'; do
        if ! tr -s ' \n' '  ' <LICENSE | grep -q "$words"; then
            echo "LICENSE lacks: $words"
            bad=1
        fi
    done
    if ! grep -q "^set(AKIN_LICENSE \"$name\")" cmake/AkinInstall.cmake; then
        echo "cmake/AkinInstall.cmake: AKIN_LICENSE is not $name"
        bad=1
    fi
    if ! grep -q '^License: @AKIN_LICENSE@$' cmake/akin.pc.in; then
        echo "cmake/akin.pc.in: no line 'License: @AKIN_LICENSE@'"
        bad=1
    fi
    return $bad
}

check_words() {
    # Brackets keep these patterns from matching themselves.
    local pattern='\b(TO[D]O|FIX[M]E|XX[X])\b|not[ ]implemented'
    pattern+='|\b[Ii]ssue[ ]#?[0-9]|[/]work[/]|[.][.][/]shared\b'
    if files '*' | grep -v '^LICENSE$' | xargs -r -d '\n' \
        grep -nIE -e "$pattern" --; then
        echo "words that do not belong in the tree"
        return 1
    fi
}

check_length() {
    files '*.c' '*.h' '*.sh' '*.cmake' CMakeLists.txt | xargs -r wc -l | awk '
        $2 == "total" { next }
        $1 >= 1000 { print $2 ": " $1 " lines, split it before 1,000"; bad = 1 }
        $1 >= 400 && $1 < 1000 {
            print "warning: " $2 ": " $1 " lines, aim under 400"
        }
        END { exit bad }'
}

check_shell() {
    local bad=0 file
    if command -v shellcheck >/dev/null; then
        # What a sourced file sets or takes shows only in those who source it.
        scripts | xargs -r shellcheck -x -e SC2034,SC2119,SC2120
        return
    fi
    while read -r file; do
        bash -n "$file" || bad=1
    done < <(scripts)
    return $bad
}

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
}

chosen=()
while [ $# -gt 0 ]; do
    case $1 in
    --build)
        build=${2:?--build needs a folder}
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        if [[ " ${all[*]} " != *" $1 "* ]]; then
            echo "check: no check named '$1'; there are: ${all[*]}" >&2
            exit 2
        fi
        chosen+=("$1")
        ;;
    esac
    shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${all[@]}")

failed=()
skipped=()
for check in "${chosen[@]}"; do
    ("check_$check")
    case $? in
    0) echo "$check: passed" ;;
    77) skipped+=("$check") ;;
    *)
        echo "$check: FAILED"
        failed+=("$check")
        ;;
    esac
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "check: failed: ${failed[*]}"
    exit 1
fi
if [ ${#skipped[@]} -gt 0 ]; then
    echo "check: skipped, a tool is missing: ${skipped[*]}"
    exit 77
fi
