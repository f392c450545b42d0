#!/usr/bin/env bash
# Simulates the jobs of ELDR's published measurements and prints tables that set
# ours beside theirs. README.md shows the tables of a full run and explains them.
#
# usage: examples/paper/run.sh [OPTION]...
#   --quick         two seconds of arrivals, few rates: does it all work?
#   --out DIR       where cells and tables go (default: build/paper)
#   --only PATTERN  these cells alone, such as 'tau-*'; the tables then show
#                   these and what was there before
#   --list          name the cells, run none
#   --threads N     simulate N runs at a time (default: 1)
#   --akin FILE     the command (default: build/launch/akin, else that of PATH)
#
# A cell is one call of akin. What it printed is kept as DIR/NAME.json, so that a
# second call of this script goes on where the first was stopped; a cell whose
# call has changed runs again. It needs jq.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

# Seconds of arrivals before and while requests are measured; runs per policy.
warmup=40
seconds=120
seeds=3
rates=(20 40 60 80 100)
ep_rates=(24 32 40 48 56)
scales=(64 256 1024 4096)
made_requests=500
decide_workers=16,256,4096
bench_seconds=2

models=(qwen3-30b-a3b gpt-oss-120b gemma-4-26b-a4b)
kinds=(task language)
baselines=rr,random,jsq,p2c
ours=union,union-band,union-pull

out=$top/build/paper
only='*'
list=
threads=1
akin=$top/build/launch/akin
[ -x "$akin" ] || akin=$(command -v akin || echo "$akin")

fail() {
    echo "run.sh: $*" >&2
    exit 1
}

usage_error() {
    echo "run.sh: $*; see run.sh --help" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick)
        warmup=1 seconds=2 seeds=2 made_requests=100
        decide_workers=16 bench_seconds=1
        rates=(60) ep_rates=(40) scales=(64)
        ;;
    --list) list=yes ;;
    --out | --only | --threads | --akin)
        [ $# -ge 2 ] || usage_error "$1 needs a value"
        declare "${1#--}=$2"
        shift
        ;;
    -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) usage_error "unknown argument '$1'" ;;
    esac
    shift
done

# sim NAME FILE RATE KEY=VALUE...: the cell that simulates a file at a rate.
sim() {
    local name=$1 file=$2 rate=$3 settings=() setting
    shift 3
    for setting in "requests.rate=$rate" "requests.warmup=$((rate * warmup))" \
        "requests.measured=$((rate * seconds))" "seeds=$seeds" "$@"; do
        settings+=(--set "$setting")
    done
    cell "$name" sim -c "$file" --cost --json "${settings[@]}"
}

# 8 prefill and 16 decode workers, one GPU each.
pool() {
    sim "$1" 8p16d-qwen3-30b-task.sim "${@:2}"
}

all_cells() {
    local model kind rate tau n place
    for model in "${models[@]}"; do
        for kind in "${kinds[@]}"; do
            for rate in "${rates[@]}"; do
                pool "rate-$model-$kind-$rate" "$rate" model="$model" \
                    workload.kind="$kind" \
                    routing.policies="$baselines,domain,eldr-static,eldr,$ours"
            done
            pool "variant-$model-$kind" 60 model="$model" \
                workload.kind="$kind" fit.variant=count \
                routing.policies=rr,eldr,union-band
        done
        # 0.1 is among the cells above.
        for tau in 0 0.2 0.3; do
            pool "tau-$model-$tau" 60 model="$model" routing.tau="$tau" \
                routing.policies=rr,eldr,union-band
        done
    done
    for n in 8 24; do
        for rate in "${rates[@]}"; do
            pool "pool-$n-$rate" "$rate" workload.kind=language \
                roles.decode="$n" routing.policies="rr,eldr,$ours"
        done
    done
    for place in linear activation; do
        for rate in "${ep_rates[@]}"; do
            sim "ep-$place-$rate" 2p8d-ep4-qwen3-235b-language.sim "$rate" \
                ep.placement="$place" routing.policies="$baselines,eldr,$ours"
        done
    done
    sim drift drift.sim 60
    for n in "${scales[@]}"; do
        sim "scale-$n" scale.sim $((n * 4)) roles.decode="$n" \
            roles.prefill=$((n / 2))
    done
    for kind in "${kinds[@]}"; do
        cell "trace-$kind-made" trace make --like qwen3-30b-a3b --workload "$kind" \
            --requests "$made_requests" -o "$out/traces/$kind.json" --json
        cell "trace-$kind" trace info "$out/traces/$kind.json" --json
    done
    cell route bench route --workers "$decide_workers" --seconds "$bench_seconds" \
        --json
}

# cell NAME ARGUMENT...: runs akin unless the cell is there.
cell() {
    local name=$1 file=$out/$1.json
    shift
    # shellcheck disable=SC2053 # It is a pattern.
    [[ $name == $only ]] || return 0
    if [ -n "$list" ]; then
        echo "$name"
        return
    fi
    n_seen=$((n_seen + 1))
    if jq -e --arg call "$*" '.call == $call' "$file" >/dev/null 2>&1; then
        return
    fi
    printf '[%d/%d] %s\n' "$n_seen" "$n_cells" "$name" >&2
    local extra=()
    [ "$1" != sim ] || extra=(--threads "$threads")
    "$akin" "$@" ${extra[@]+"${extra[@]}"} >"$out/.printed" 2>"$out/.said" \
        </dev/null &
    child=$!
    wait "$child" || {
        cat "$out/.said" >&2
        fail "the cell $name failed: $akin $*"
    }
    jq -n --arg cell "$name" --arg call "$*" --rawfile said "$out/.said" \
        --slurpfile printed "$out/.printed" \
        '{cell: $cell, call: $call, said: $said, printed: $printed[0]}' \
        >"$out/.cell"
    mv "$out/.cell" "$file"
}

stop() {
    trap - INT TERM
    [ -z "$child" ] || kill "$child" 2>/dev/null || true
    wait
    echo "run.sh: stopped; the same call goes on from here" >&2
    exit 4
}

if [ -n "$list" ]; then
    all_cells
    exit
fi
command -v jq >/dev/null || fail "jq is missing; it is a package of that name"
[ -x "$akin" ] || fail "$akin is missing: build it, or say --akin FILE"
akin=$(realpath "$akin")
mkdir -p "$out/traces"
out=$(realpath "$out")
cd "$here"
child=
trap stop INT TERM
n_seen=0
n_cells=$(list=yes all_cells | wc -l)
[ "$n_cells" -gt 0 ] || usage_error "--only '$only' names no cell"
all_cells
jq -n -r --slurpfile published published.json -f tables.jq "$out"/*.json \
    >"$out/.tables"
mv "$out/.tables" "$out/tables.md"
cat "$out/tables.md"
