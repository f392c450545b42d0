#!/usr/bin/env bash
# The simulator against real jobs: the same trace, the same workers, once served
# by ranks under mpirun with the modelled engine, once by akin sim.
#
# usage: examples/paper/job-against-sim.sh [--slowdown N] [--requests N]
#            [--out DIR] [JOB...]
#   JOB         8p16d (25 ranks) or 2p8d-ep4 (41 ranks); both if none is named
#   --slowdown  how much slower than modelled the job runs (8): the more the
#               less this machine's own time shows
#   --requests  of the trace (384)
#   --out       where traces and summaries go (job-against-sim)
#
# Run it from the folder that examples/ lies in, with akin in PATH (or AKIN set)
# and jq installed.
set -euo pipefail

akin=${AKIN:-akin}
slowdown=8
requests=384
out=./job-against-sim
jobs=()
while [ $# -gt 0 ]; do
    case $1 in
    --slowdown) slowdown=$2 && shift ;;
    --requests) requests=$2 && shift ;;
    --out) out=$2 && shift ;;
    8p16d | 2p8d-ep4) jobs+=("$1") ;;
    *) sed -n '5,14s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[ ${#jobs[@]} -gt 0 ] || jobs=(8p16d 2p8d-ep4)
mkdir -p "$out"

# show FILES HEAD FIGURE JOB-FILTER SIM-KEY: a line of the table.
show() {
    awk -v d="$(jq "$4" "$1.job.json")" \
        -v s="$(jq ".policies[0].$5.mean" "$1.sim.json")" \
        -v head="$2 | $3" 'BEGIN {
            printf "%s | %.2f | %.2f | %+.1f %% |\n", head, d, s,
                100 * (s / d - 1) }'
}

# compare JOB MODEL IN-FLIGHT ROLES MAX-BATCH DECODE-WORKERS: lines for each
# policy. The fit has seen the requests, in both.
compare() {
    local job=$1 model=$2 in_flight=$3 policy trace=$out/$2-$requests.json
    local at=$out/$1-$requests-times-$slowdown
    local config=examples/jobs/modelled-$1-${2%-a*b}.cfg
    local settings=(--set "modelled.trace=$trace"
        --set "modelled.slowdown=$slowdown"
        --set "router.max_in_flight=$in_flight" --set net.heartbeat_timeout=30s)
    [ -e "$trace" ] || "$akin" trace make --like "$model" --seed 1 \
        --requests "$requests" --output-spread 0 -o "$trace" >/dev/null
    "$akin" trace prompts -m examples/tiny-moe "$trace" >"$at.in"
    [ -e "$at.fit.json" ] || "$akin" fit "$trace" -K "$6" \
        --variant count_idf -o "$at.fit.json" >/dev/null
    for policy in rr jsq union eldr union-band; do
        [ -e "$at-$policy.job.json" ] || {
            rm -f "$at.out"
            "$akin" run -c "$config" "${settings[@]}" -i "$at.in" \
                -o "$at.out" --set routing.decode=$policy \
                --set "routing.fit=$at.fit.json" --set ep.placement=linear \
                --summary "$at-$policy.part" 2>"$at-$policy.log" || {
                cat "$at-$policy.log" >&2
                exit 1
            }
            mv "$at-$policy.part" "$at-$policy.job.json"
        }
        cat >"$at-$policy.sim" <<SIM
model = "$model";
routes = { trace = "$trace"; };
requests = { in_flight = $in_flight; total = $requests; warmup = 0;
             measured = $requests; };
roles = { $4 };
ep = { placement = "linear"; };
prefill = { chunk_tokens = 2048; };
decode = { max_batch = $5; };
routing = { policies = "$policy"; };
fit = { file = "$at.fit.json"; };
SIM
        "$akin" sim -c "$at-$policy.sim" --json >"$at-$policy.sim.json"
        show "$at-$policy" "| $job | $policy" "TPOT P50, ms" '.median_tpot_ms / .slowdown' \
            p50_tpot_ms
        show "$at-$policy" "| $job | $policy" "experts per layer" '.distinct_experts_per_step' \
            distinct_experts
        if [ "$job" = 2p8d-ep4 ]; then
            show "$at-$policy" "| $job | $policy" "of the busiest rank" \
                '.max_rank_distinct_experts_per_step' busiest_rank_experts
        fi
    done
}

echo "| job | policy | figure | job | sim | |"
echo "|---|---|---|---|---|---|"
for job in "${jobs[@]}"; do
    case $job in
    8p16d) compare 8p16d qwen3-30b-a3b 256 "prefill = 8; decode = 16;" 48 16 ;;
    2p8d-ep4)
        compare 2p8d-ep4 qwen3-235b-a22b 128 \
            "prefill = 2; decode = 8; ep = 4;" 192 8
        ;;
    esac
done
