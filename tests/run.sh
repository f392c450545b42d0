#!/usr/bin/env bash
# Builds Akin and runs its tests: unit, mpi, conf, fault, fuzz corpus, checks.
#
# usage: tests/run.sh [--asan|--tsan|--ubsan] [--target NAME...] [CTEST_OPTION...]
#   --asan, --tsan, --ubsan  test a build with that sanitizer
#   --target NAME            build that only: unit_tests, fuzz_targets
#   -R REGEX, -L LABEL, ...  anything else goes to ctest: -L unit, -E fault
#
# --tsan alone runs the tests of transfers, requests and nets and of what lies
# between two threads. ThreadSanitizer does not know the OpenMP runtime, so the
# tests of what uses that mean nothing under it.
#
# Builds in build-test/ (build-asan/ and so on), with -Werror if CI is set.
# The last line is "N passed, N failed"; the exit code is 0 if none failed.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
type=RelWithDebInfo
build=$top/build-test
ctest_args=()
targets=()
threads='^mpi\.(transfer|net)|^unit\.test_(cache|transfer|prefill(_random)?$'
threads+='|decode$|stepper|worker_|router|replacer|refit_thread|net_|heartbeat)'
while [ $# -gt 0 ]; do
    case $1 in
    --asan | --tsan | --ubsan)
        name=${1#--}
        type=${name^}
        build=$top/build-$name
        ;;
    --target)
        targets+=(--target "$2")
        shift
        ;;
    -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *) ctest_args+=("$1") ;;
    esac
    shift
done

if [ "$type" = Tsan ] && [ ${#ctest_args[@]} -eq 0 ]; then
    ctest_args=(-R "$threads")
fi

for tool in cmake ctest ninja pkg-config mpicc; do
    if ! command -v "$tool" >/dev/null; then
        echo "run: $tool is missing: run examples/install-deps.sh" >&2
        exit 1
    fi
done

werror=OFF
[ -z "${CI:-}" ] || werror=ON
cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE="$type" \
    -DAKIN_TESTS=ON -DAKIN_FAULTS=ON -DAKIN_WERROR="$werror"
cmake --build "$build" -j 2 "${targets[@]}"

report=$build/report.xml
rm -f "$report"
code=0
# Whole jobs, above all those that lose ranks, wait more than they compute; what
# a sanitizer slows down does not.
jobs=3
[ "$type" = RelWithDebInfo ] || jobs=2
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$report" "${ctest_args[@]}" || code=$?
if [ ! -f "$report" ]; then
    echo "run: ctest wrote no report" >&2
    exit 1
fi

# One line per skipped test with the last line that it printed, then the sums,
# which the CI script reads from a file.
failed=0
awk -v code="$code" '
    function attribute(line, name) {
        if (!match(line, "[ \t]" name "=\"[^\"]*\""))
            return ""
        return substr(line, RSTART + length(name) + 3,
                      RLENGTH - length(name) - 4)
    }
    function close_case() {
        if (status == "run")
            passed++
        else if (status == "fail")
            failed++
        else if (status != "") {
            skipped++
            gsub(/&lt;/, "<", reason)
            gsub(/&gt;/, ">", reason)
            gsub(/&quot;/, "\"", reason)
            gsub(/&amp;/, "\\&", reason)
            print "skipped: " name ": " (reason == "" ? "no reason" : reason)
        }
        status = ""
    }
    /<testcase / {
        name = attribute($0, "name")
        status = attribute($0, "status")
        reason = ""
    }
    /<system-out>/ { inside = 1 }
    inside {
        text = $0
        sub(/.*<system-out>/, "", text)
        sub(/<\/system-out>.*/, "", text)
        if (text !~ /^[ \t]*$/)
            reason = text
    }
    /<\/system-out>/ { inside = 0 }
    /<\/testcase>/ { close_case() }
    END {
        if (passed + failed == 0 || (code != 0 && failed == 0))
            failed++
        printf "%d passed, %d failed", passed, failed
        if (skipped > 0)
            printf ", %d skipped", skipped
        print ""
        exit failed > 0
    }
' "$report" >"$build/summary" || failed=1
cat "$build/summary"
exit "$failed"
