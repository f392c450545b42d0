#!/usr/bin/env bash
# Damaged and stale blocks are refused, counted by reason, and the prompt is
# computed again: the output stays what it was.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"

# refused NAME: blocks that a run's readers refused; fails if there were none,
# or any for another reason than REASON.
refused() {
    local all
    all=$(value "$1" kv_blocks_refused.total)
    [ "$all" -gt 0 ] || fail "$1: nothing was refused"
    [ -z "${2:-}" ] || expect "$1: refused for the reason" "$all" \
        "$(value "$1" "kv_blocks_refused.$2")"
}

# Enough blocks for several faults, and none of the prompts so long that it
# would meet one in every attempt.
for round in 1 2 3 4; do
    grep -v '"shared-6"' "$prompts" |
        sed "s/\"custom_id\": \"/&$round-/"
done >"$scratch/four.in"
input=$scratch/four.in
run base
expect "base: exit code" 0 "$code"
# What is damaged, and the check that has to find it.
for item in flip-kv:checksum flip-sidecar:checksum \
    flip-header: stale-generation:generation; do
    fault=${item%:*}
    AKIN_FAULT_KV=$fault:41 run "$fault" --set roles.decode=1
    expect "$fault: exit code" 0 "$code"
    expect_same "$fault" "$scratch/base.jsonl" "$scratch/$fault.jsonl"
    refused "$fault" "${item#*:}"
    expect "$fault: answers" "100 0" \
        "$("$check" lines "$scratch/$fault.jsonl" 16 | cut -d' ' -f1,2)"
done
AKIN_FAULT_KV=flip-kv:83,flip-sidecar:97,stale-generation:101 run all \
    --set roles.decode=1 --set kv.prefix_cache=false
expect "all: exit code" 0 "$code"
expect_same "all" "$scratch/base.jsonl" "$scratch/all.jsonl"
for reason in checksum generation; do
    [ "$(value all kv_blocks_refused.$reason)" -gt 0 ] ||
        fail "all: nothing was refused for its $reason"
done

# Damage where a block is owned: prompts that begin alike find it in the cache.
# One reader refuses it, one prompt is computed again, and the others find sound
# blocks. Several at a time may have been computed from it by then; their
# readers are refused as well.
input=$scratch/alike.in
grep '"shared-' "$prompts" >"$input"
run alike
expect "alike: exit code" 0 "$code"
for at_a_time in 1 4; do
    name=owned-$at_a_time
    AKIN_FAULT_KV=flip-owned:3 run "$name" \
        --set router.max_in_flight="$at_a_time"
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/alike.jsonl" "$scratch/$name.jsonl"
    refused "$name"
done
expect "owned-1: refused" 1 "$(value owned-1 kv_blocks_refused.total)"
expect "owned-1: began again" 1 \
    "$(grep -c 'starts again: checksum' "$scratch/owned-1.err")"
grep -q 'a cached block is damaged in memory: checksum' \
    "$scratch/owned-1.err" || fail "owned-1: the owner did not find it"

# Where every block is bad, each request fails with an error line, in bounded
# time; those that need no block are answered.
input=$prompts
AKIN_FAULT_KV=flip-kv:1 run never
expect "never: exit code" 3 "$code"
expect "never: answers, errors" "1 25" \
    "$("$check" lines "$scratch/never.jsonl" 16 | cut -d' ' -f1,2)"
expect_text "never" "$scratch/never.jsonl" '"code":"too_many_restarts"'

# Nobody comes in the place of ranks that refuse the switch.
AKIN_FAULT_KV=flip-kv:x run bad --set recovery.mode=shrink
expect "bad switch: exit code" 1 "$code"
finish
