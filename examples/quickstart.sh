#!/usr/bin/env bash
# Builds Akin and serves one batch twice with 7 ranks on this machine: once
# with requests given to the least loaded decode worker, once by the experts
# they use. Shows both runs side by side.
#
# usage: examples/quickstart.sh [--jobs N]
#   --jobs N  compile N files at a time (default: the number of cores)
#
# Everything it writes lies in build/. A second call uses what is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build
out=$build/quickstart
job=examples/jobs/quickstart.conf
prompts=examples/prompts.jsonl
akin=$build/launch/akin
jobs=$(nproc)

fail() {
    echo "quickstart: $*" >&2
    exit 1
}

usage_error() {
    echo "quickstart: $*; usage: examples/quickstart.sh [--jobs N]" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --jobs)
        [ $# -ge 2 ] || usage_error "--jobs needs a number"
        jobs=$2
        shift
        ;;
    --jobs=*) jobs=${1#--jobs=} ;;
    -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) usage_error "unknown argument '$1'" ;;
    esac
    shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs $jobs: not a number from 1"

step() {
    echo
    echo "==> $*"
}

# run POLICY: serves the batch; what akin prints goes to a log.
run() {
    local policy=$1 code=0
    # akin does not write over the answers of an earlier call.
    rm -f "$out/$policy.jsonl" "$out/$policy.json"
    "$akin" run -c "$job" -i "$prompts" -o "$out/$policy.jsonl" \
        --set routing.decode="$policy" --ordered --deterministic-ids \
        --summary "$out/$policy.json" >"$out/$policy.log" 2>&1 </dev/null ||
        code=$?
    if [ "$code" -ne 0 ]; then
        tail -n 20 "$out/$policy.log" >&2
        fail "akin run ended with exit code $code; all it said is in" \
            "$out/$policy.log"
    fi
    check "$out/$policy.jsonl"
}

# check FILE: one answer for each request, and no error among them.
check() {
    local asked answered good
    asked=$(grep -c . "$prompts")
    answered=$(grep -c . "$1") || true
    good=$(grep -c '"status_code":200,.*"error":null}$' "$1") || true
    [ "$answered" -eq "$asked" ] ||
        fail "$1 has $answered lines for $asked requests"
    [ "$good" -eq "$asked" ] ||
        fail "$1 has $((asked - good)) lines with an error"
    echo "    $good requests, $good answers"
}

step "Checking the packages that Akin needs"
examples/install-deps.sh

step "Building Akin in $PWD/$build"
# An existing folder keeps its generator and its build type.
configure=()
[ -e "$build/CMakeCache.txt" ] ||
    configure=(-G Ninja -DCMAKE_BUILD_TYPE=Release)
mkdir -p "$out"
cmake -S . -B "$build" ${configure[@]+"${configure[@]}"} \
    >"$out/cmake.log" 2>&1 || {
    tail -n 20 "$out/cmake.log" >&2
    fail "cmake failed; see $out/cmake.log"
}
cmake --build "$build" --target akin --parallel "$jobs" \
    >"$out/build.log" 2>&1 || {
    tail -n 40 "$out/build.log" >&2
    fail "the build failed; see $out/build.log"
}
echo "    $("$akin" --version) at $akin"

step "Serving $prompts with 1 router, 2 prefill and 4 decode ranks:" \
    "least loaded worker first (jsq)"
run jsq

step "The same with the union of experts (union)"
run union

step "Comparing the answers of the two runs"
cmp "$out/jsq.jsonl" "$out/union.jsonl" ||
    fail "the answers differ: they must not depend on the worker"
echo "    identical, byte for byte"

step "Both runs side by side"
"$akin" compare "$out/jsq.json" "$out/union.json"

cat <<END

The model is tiny and the ranks share $(nproc) cores, so times vary from run to
run. What a decode step costs on a large model is the number of distinct
experts that its batch touches; compare it at equal batch sizes.
Answers: $out/union.jsonl, all figures: $out/union.json, tables: $out/union.log

Next: ask something of your own,
  $akin generate -m examples/tiny-moe -p '#include <stdio.h>' -n 40
or read $job and change it:
  $akin run -c $job -i $prompts -o answers.jsonl --set roles.decode=8
END
