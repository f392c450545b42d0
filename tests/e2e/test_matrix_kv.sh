#!/usr/bin/env bash
# The output is the same for every size of blocks, chunks, batches and slabs,
# and with or without the prefix cache.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run base
expect "base: exit code" 0 "$code"
for setting in kv.block_tokens=8 kv.block_tokens=32 kv.block_tokens=64 \
    kv.prefix_cache=false prefill.chunk_tokens=1 prefill.chunk_tokens=7 \
    prefill.chunk_tokens=64 decode.max_batch=1 decode.max_batch=3 \
    router.max_in_flight=2 engine.threads=2 kv.slab=1MiB; do
    run "$setting" --set "$setting"
    expect "$setting: exit code" 0 "$code"
    expect_same "$setting" "$scratch/base.jsonl" "$scratch/$setting.jsonl"
done
# The cache was at work, and is off when it is off.
[ "$(value base prefix_cache_hits)" -gt 0 ] || fail "base: no prefix hits"
expect "cache off: hits" 0 "$(value kv.prefix_cache=false prefix_cache_hits)"

# The longest prompt needs all but a few of the 36 slots of 1 MiB: requests
# had to wait for each other, and cached blocks had to give way.
run tight --set kv.slab=1MiB --set kv.prefix_cache=true \
    --set prefill.chunk_tokens=16 --set decode.max_batch=2 \
    --set roles.decode=1
expect "tight: exit code" 0 "$code"
expect_same "tight" "$scratch/base.jsonl" "$scratch/tight.jsonl"
finish
