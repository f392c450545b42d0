#!/usr/bin/env bash
# The output is the same for every policy and number of ranks, and the engine's
# own: whoever serves a request, these bytes are its answer.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run base
expect "base: exit code" 0 "$code"
expect "base: answers, errors" "26 0" \
    "$("$check" lines "$scratch/base.jsonl" 16 | cut -d' ' -f1,2)"
expect_same "base: order" <("$check" ids "$prompts") \
    <("$check" ids "$scratch/base.jsonl")

# One prompt alone in one process is the second implementation.
while read -r id; do
    # A draw without a seed is the batch's own: its seed is the custom_id.
    [ "$id" != no-seed ] || continue
    mapfile -d '' -t arguments < <("$check" arguments "$prompts" "$id" \
        "$scratch/chat.json")
    "$akin" generate -m "$model" -t 1 --json "${arguments[@]}" \
        >"$scratch/generate.json" || fail "generate $id"
    "$check" get "$scratch/generate.json" text >"$scratch/alone.txt"
    "$check" text "$scratch/base.jsonl" "$id" >"$scratch/batch.txt"
    expect_same "$id alone" "$scratch/alone.txt" "$scratch/batch.txt"
done < <("$check" ids "$prompts")

for policy in random rr jsq p2c union; do
    run "$policy" --set routing.decode=$policy --set roles.decode=4
    expect "$policy: exit code" 0 "$code"
    expect_same "$policy" "$scratch/base.jsonl" "$scratch/$policy.jsonl"
done
for ranks in 1:1 2:1 2:2 2:4; do
    run "ranks-$ranks" --set "roles.prefill=${ranks%:*}" \
        --set "roles.decode=${ranks#*:}"
    expect "ranks $ranks: exit code" 0 "$code"
    expect_same "ranks $ranks" "$scratch/base.jsonl" \
        "$scratch/ranks-$ranks.jsonl"
done
run least --set routing.prefill=least-loaded --set roles.prefill=2
expect_same "prefill policy" "$scratch/base.jsonl" "$scratch/least.jsonl"
finish
