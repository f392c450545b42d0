#!/usr/bin/env bash
# akin compare: figures and changes of hand-made summaries, and what it refuses.
#
# usage: test_compare.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# summary FILE POLICY TPOT DISTINCT BATCHES: a summary with these figures.
summary() {
    cat >"$work/$1" <<END
{"backend": "akin", "policy": "$2", "completed": 4, "failed": 0,
 "duration": 2.0, "output_throughput": 100.0,
 "mean_ttft_ms": 5.0, "p50_ttft_ms": 4.0, "p99_ttft_ms": 9.0,
 "mean_tpot_ms": $3, "p50_tpot_ms": 1.0, "p99_tpot_ms": 2.0,
 "steps": 50, "mean_batch": 3.5, "distinct_experts_per_step": $4,
 "kv_blocks_moved": 7, "prefix_cache_hits": 0,
 "distinct_experts_by_batch": [$5]}
END
}

# size BATCH STEPS DISTINCT
size() {
    echo "{\"batch\": $1, \"steps\": $2, \"distinct_experts\": $3}"
}

# Sizes 2 and 4 are common: 10 steps of 2 (the first run's) and 5 of 4 (the
# second's). (10 x 8 + 5 x 14) / 15 = 10 and (10 x 7 + 5 x 10) / 15 = 8. Size 8
# is not common, and the entry of many sizes does not count.
many='{"batch": 2.0, "mixed": true, "steps": 99, "distinct_experts": 30.0}'
summary a.json jsq 4.0 12.5 \
    "$(size 2 10 8.0), $(size 4 20 14.0), $(size 8 20 20.0), $many"
summary b.json union 3.0 10.0 "$(size 2 45 7.0), $(size 4 5 10.0)"
summary c.json none 0 null "$(size 1 9 null)"

accept compare --json "$work/a.json" "$work/b.json"
same 'policy' "$(value runs 0 policy) $(value runs 1 policy)" 'jsq union'
same 'equal steps' "$(value equal_batch_steps)" 15

# figure NAME KEY...: a value of the figure of that name.
figure() {
    local name=$1 i=0
    shift
    while [ "$("$json_value" "$work/out" figures "$i" name)" != "$name" ]; do
        i=$((i + 1))
        [ "$i" -lt 40 ] || return 0
    done
    value figures "$i" "$@"
}

# near WHAT A B: two numbers must be equal.
near() {
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a - b == 0) }' ||
        complain "$1: $2 is not $3"
}

equal=distinct_experts_at_equal_batch
near 'first at equal batch' "$(figure $equal values 0)" 10
near 'second at equal batch' "$(figure $equal values 1)" 8
near 'change at equal batch' "$(figure $equal change_percent 1)" -20
near 'time' "$(figure mean_tpot_ms values 1)" 3
near 'change of the time' "$(figure mean_tpot_ms change_percent 1)" -25
near 'change of the experts' \
    "$(figure distinct_experts_per_step change_percent 1)" -20

# Turned round, the changes are those from the other run.
accept compare --json "$work/b.json" "$work/a.json"
near 'change, turned round' "$(figure $equal change_percent 1)" 25

# A run without experts has no figure, and nothing is compared with it.
accept compare --json "$work/a.json" "$work/c.json"
same 'no common step' "$(value equal_batch_steps)" 0
accept compare "$work/a.json" "$work/b.json" "$work/c.json"
holds 'union'
holds '12.50'
grep -qE 'distinct experts per step and layer +12\.50 +10\.00 -20\.0 % +- *$' \
    "$work/out" || complain 'no row of distinct experts'
accept compare "$work/a.json"
holds 'requests answered'
accept compare --help
holds 'SUMMARY.json'

refuse 2 'no summary' compare
refuse 2 'frob' compare --frob "$work/a.json"
refuse 1 "$work/none.json: cannot open" compare "$work/a.json" "$work/none.json"
refuse 1 "$work: cannot read" compare "$work"
refuse 1 'end of file' compare /dev/zero
: >"$work/empty.json"
refuse 1 "$work/empty.json" compare "$work/empty.json"
head -c 200 "$work/a.json" >"$work/half.json"
refuse 1 "$work/half.json:" compare "$work/half.json"
echo '[1, 2]' >"$work/array.json"
refuse 1 'not a summary of a run' compare "$work/array.json"
sed 's/"akin"/"vllm"/' "$work/a.json" >"$work/backend.json"
refuse 1 'backend is not "akin"' compare "$work/backend.json"
sed 's/"steps": 50, //' "$work/a.json" >"$work/lacks.json"
refuse 1 'steps is not a number' compare "$work/lacks.json"
summary sizes.json jsq 4.0 12.5 "$(size 2 '"ten"' 8.0)"
refuse 1 'distinct_experts_by_batch[0]' compare "$work/sizes.json"

full compare "$work/a.json"
full compare --json "$work/a.json"
finish
