#!/usr/bin/env bash
# Every block that a prompt needs was moved once or was there already, and the
# bytes are those of the blocks.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# The model's figures: 6 layers, 2 key/value heads of 32, 32 experts.
header=64
sidecar=$((6 * 32))
kv_per_token=$((6 * 2 * 2 * 32 * 2))

# conserve NAME BLOCK-TOKENS
conserve() {
    local name=$1 block=$2 blocks decoded moved shared bytes payload stride
    expect "$name: exit code" 0 "$code"
    read -r _ _ blocks decoded _ \
        < <("$check" lines "$scratch/$name.jsonl" "$block")
    moved=$(value "$name" kv_blocks_moved)
    shared=$(value "$name" kv_blocks_shared)
    bytes=$(value "$name" kv_bytes_moved)
    expect "$name: blocks" "$blocks" $((moved + shared))
    expect "$name: decisions" "$decoded" "$(value "$name" routing_decisions)"
    expect "$name: refused" 0 "$(value "$name" kv_blocks_refused.total)"
    expect "$name: bytes that were read" "$bytes" \
        "$(value "$name" kv_bytes_read)"
    expect "$name: rendezvous" 0 "$(value "$name" kv_reads_rendezvous)"
    # Each read is a run of slots up to the payload of the last one: what is
    # over the payloads is the padding between them.
    payload=$((header + kv_per_token * block + sidecar))
    stride=$(((payload + 4095) / 4096 * 4096))
    expect "$name: bytes" "$bytes" $((moved * payload + (moved -
        $(value "$name" kv_reads_one_sided)) * (stride - payload)))
}

run cache
conserve cache 16
[ "$(value cache kv_blocks_shared)" -gt 0 ] || fail "cache: nothing shared"

run none --set kv.prefix_cache=false
conserve none 16
expect "none: shared" 0 "$(value none kv_blocks_shared)"

run eight --set kv.block_tokens=8 --set roles.prefill=2 --set roles.decode=4
conserve eight 8

# Prompts of one block: nothing but payloads.
grep -v '"shared-\|"legal' "$prompts" >"$scratch/short.in"
input=$scratch/short.in run short --set kv.block_tokens=64
conserve short 64
read -r _ _ blocks decoded single < <("$check" lines "$scratch/short.jsonl" 64)
expect "short: one block each" "$decoded $decoded" "$blocks $single"
expect "short: bytes" $((decoded * (header + kv_per_token * 64 + sidecar))) \
    "$(value short kv_bytes_moved)"

# What the router counted is what the lines say.
expect "cache: answered" 26 "$(value cache completed)"
expect "cache: failed" 0 "$(value cache failed)"
finish
