#!/usr/bin/env bash
# Simulates the jobs of ELDR's published measurements and prints tables that set
# ours beside theirs. README.md shows the tables of a full run and explains them.
#
# usage: examples/paper/run.sh [OPTION]...
#   --quick         a second of arrivals, one rate: does it all work?
#   --out DIR       where cells and tables go (default: build/paper)
#   --only PATTERN  these cells alone, such as 'tau-*'; the tables then show
#                   these and what was there before
#   --list          name the cells, run none
#   --threads N     simulate N runs at a time (default: 1)
#   --akin FILE     the command (default: build/launch/akin, else that of PATH)
#
# A cell is one call of akin. What it printed is kept as DIR/NAME.json, so that a
# second call of this script goes on where the first was stopped; a cell whose
# call has changed runs again. Routes of requests are made once for each model
# and workload, in DIR/routes, 4 GB in all. It needs jq.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

# Seconds of arrivals before requests are measured, and while they are; runs of
# every policy.
warmup=30
seconds=40
seeds=3
rates=(20 40 60 80 100)
ep_rates=(24 40 56)
scales=(64 256 1024 4096)
# Requests whose routes are made, of the small models and of the big one, and how
# many of these the fit learns from. The others are more than are ever in the
# system, so that none meets a copy of itself.
made=4200
ep_made=2200
learned=1000
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
        warmup=1 seconds=1 seeds=2 made=160 ep_made=100 learned=40
        rates=(60) ep_rates=(40) scales=(64)
        decide_workers=16 bench_seconds=1
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
        "requests.measured=$((rate * seconds))" "seeds=$seeds" \
        "fit.requests=$learned" "$@"; do
        settings+=(--set "$setting")
    done
    cell "$name" sim -c "$file" --cost --json "${settings[@]}"
}

# pool NAME MODEL KIND RATE KEY=VALUE...: 8 prefill and 16 decode workers of one
# GPU each.
pool() {
    routes="$2 $3 $made"
    sim "$1" 8p16d-qwen3-30b-task.sim "$4" model="$2" \
        routes.trace="$out/routes/$2-$3.json" fit.max_tokens=0 "${@:5}"
    routes=
}

all_cells() {
    local model kind rate tau n place
    for model in "${models[@]}"; do
        for kind in "${kinds[@]}"; do
            for rate in "${rates[@]}"; do
                pool "rate-$model-$kind-$rate" "$model" "$kind" "$rate" \
                    routing.policies="$baselines,domain,eldr-static,eldr,$ours"
            done
            pool "variant-$model-$kind" "$model" "$kind" 60 \
                fit.variant=count routing.policies=rr,eldr,union-band
        done
        pool "plain-$model" "$model" task 60 fit.clusters=plain \
            routing.policies=rr,eldr-static,eldr,union-band
        # 0.1 is among the cells above.
        for tau in 0 0.2 0.3; do
            pool "tau-$model-$tau" "$model" task 60 routing.tau="$tau" \
                routing.policies=rr,eldr,union-band
        done
    done
    for n in 8 24; do
        for rate in "${rates[@]}"; do
            pool "pool-$n-$rate" qwen3-30b-a3b language "$rate" \
                roles.decode="$n" routing.policies="rr,eldr,$ours"
        done
    done
    for n in 0 1000000; do
        sim "cache-$n" 8p16d-qwen3-30b-task.sim 100 model=gpt-oss-120b \
            workload.shared_prefix_tokens=256 prefill.cache_tokens="$n" \
            routing.policies="$baselines,eldr,$ours"
    done
    for place in linear activation; do
        for rate in "${ep_rates[@]}"; do
            routes="qwen3-235b-a22b language $ep_made"
            sim "ep-$place-$rate" 2p8d-ep4-qwen3-235b-language.sim "$rate" \
                routes.trace="$out/routes/qwen3-235b-a22b-language.json" \
                fit.max_tokens=0 ep.placement="$place" \
                routing.policies="$baselines,eldr,$ours"
            routes=
        done
    done
    sim drift drift.sim 60
    for n in "${scales[@]}"; do
        sim "scale-$n" scale.sim $((n * 4)) roles.decode="$n" \
            roles.prefill=$((n / 2)) requests.warmup=$((n * 20)) \
            requests.measured=$((n * 40)) seeds=1
    done
    for kind in "${kinds[@]}"; do
        routes="qwen3-30b-a3b $kind $made"
        cell "trace-$kind" trace info \
            "$out/routes/qwen3-30b-a3b-$kind.json" --json
        routes=
    done
    cell decision bench route --workers "$decide_workers" \
        --seconds "$bench_seconds" --json
}

# cell NAME ARGUMENT...: runs akin unless the cell is there, after it has made
# $routes, "MODEL KIND REQUESTS", if the cell needs these.
cell() {
    local name=$1
    # shellcheck disable=SC2053 # It is a pattern.
    [[ $name == $only ]] || return 0
    if [ -n "$list" ]; then
        echo "$name"
        return
    fi
    n_seen=$((n_seen + 1))
    ! is_there "$@" || return 0
    [ -z "$routes" ] || make_routes
    printf '[%d/%d] %s\n' "$n_seen" "$n_cells" "$name" >&2
    keep "$@"
}

make_routes() {
    local model kind n file
    read -r model kind n <<<"$routes"
    file=$out/routes/$model-$kind
    set -- "routes-$model-$kind" trace make --like "$model" \
        --workload "$kind" --requests "$n" --prompt-tokens 128 \
        --output-tokens 512 --output-spread 0 --seed 1 -o "$file.json" --json
    if ! is_there "$@"; then
        echo "routes of $n requests: $model, $kind" >&2
        rm -f "$file".*
        keep "$@"
    fi
}

# is_there NAME ARGUMENT...: has this call of akin been made?
is_there() {
    jq -e --arg call "${*:2}" '.call == $call' "$out/$1.json" >/dev/null 2>&1
}

# keep NAME ARGUMENT...: runs akin and keeps what it printed.
keep() {
    local name=$1 extra=()
    shift
    [ "$1" != sim ] || extra=(--threads "$threads")
    "$akin" "$@" ${extra[@]+"${extra[@]}"} >"$out/.printed" 2>"$out/.said" \
        </dev/null &
    child=$!
    wait "$child" || {
        cat "$out/.said" >&2
        fail "the cell $name failed: $akin $*"
    }
    child=
    jq -n --arg cell "$name" --arg call "$*" --rawfile said "$out/.said" \
        --slurpfile printed "$out/.printed" \
        '{cell: $cell, call: $call, said: $said, printed: $printed[0]}' \
        >"$out/.cell"
    mv "$out/.cell" "$out/$name.json"
}

stop() {
    trap - INT TERM
    [ -z "$child" ] || kill "$child" 2>/dev/null || true
    wait
    echo "run.sh: stopped; the same call goes on from here" >&2
    exit 4
}

routes=
if [ -n "$list" ]; then
    all_cells
    exit
fi
command -v jq >/dev/null || fail "jq is missing; it is a package of that name"
[ -x "$akin" ] || fail "$akin is missing: build it, or say --akin FILE"
akin=$(realpath "$akin")
mkdir -p "$out/routes"
out=$(realpath "$out")
exec {lock}>"$out/.lock"
flock -n "$lock" || fail "another call is at work in $out"
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
