#!/usr/bin/env bash
# A decode worker that holds 32 requests is killed: all of them go on elsewhere,
# half of them within a second of the time that a silent rank is given.
#
# usage: test_kill_to_token.sh AKIN CHECK SCRATCH [RUNS]
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"

runs=${4:-2}
limit_ms=$((3000 * slowness)) # net.heartbeat_timeout, 2 s, and one more

# Long answers, so that none of them ends before the last one has begun.
for ((i = 1; i <= 64; i++)); do
    echo "{\"custom_id\": \"long-$i\", \"method\": \"POST\"," \
        "\"url\": \"/v1/completions\", \"body\": {\"prompt\":" \
        "\"Request number $i asks for\", \"max_tokens\": 400," \
        "\"ignore_eos\": true, \"temperature\": 0.8, \"seed\": $i}}"
done >"$scratch/long.in"
input=$scratch/long.in
held=(--set kv.slab=64MiB --set roles.prefill=2 --set roles.decode=2
    --set routing.decode=rr)
run base "${held[@]}"
expect "base: exit code" 0 "$code"

p50s=()
for ((n = 1; n <= runs; n++)); do
    name=kill-$n
    # Its 32nd request is there, and none of them has ended.
    AKIN_FAULT=3:after-send.TRANSFERRED#32=kill \
        AKIN_FAULT_LOG=$scratch/$name.log run "$name" "${held[@]}"
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
    expect_text "$name" "$scratch/$name.log" \
        "3.0 decode after-send.TRANSFERRED kill"
    expect "$name: requests that went on" 32 \
        "$(value "$name" recovery.requests_resumed)"
    p50s+=("$(value "$name" recovery.resumed_ms.p50)")
    echo "run $n: from the kill to the next token of 32 requests:" \
        "p50 ${p50s[-1]} ms, longest" \
        "$(value "$name" recovery.resumed_ms.max) ms"
done
p50=$(printf '%s\n' "${p50s[@]}" | sort -g | awk '{ v[NR] = $1 }
    END { print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2 }')
echo "p50 of $runs runs: $p50 ms"
awk -v p50="$p50" -v limit="$limit_ms" \
    'BEGIN { exit !(p50 > 0 && p50 < limit) }' ||
    fail "p50 of $runs runs: $p50 ms, not under $limit_ms ms"
finish
