#!/usr/bin/env bash
# Workers that are killed in the middle of a run cost time and nothing else: the
# others give the same bytes, also where nobody takes their place.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Three rounds of the prompts, of which the killed worker takes part in the
# first and has work of the second.
for round in 1 2 3; do
    sed "s/\"custom_id\": \"/&$round-/" "$prompts"
done >"$scratch/three.in"
input=$scratch/three.in
run base
expect "base: exit code" 0 "$code"

roles=(--set recovery.mode=shrink --set roles.prefill=2 --set roles.decode=3
    --set decode.max_batch=2)

# lose NAME RANK: kills the rank while it works.
lose() {
    local name=$1 rank=$2
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    head -n 26 "$scratch/three.in" >&9
    input=$scratch/pipe start "$name" "${roles[@]}" --ordered 9>&-
    wait_until 60 has_lines "$scratch/$name.jsonl" 26 ||
        fail "$name: it does not begin"
    head -n 52 "$scratch/three.in" | tail -n 26 >&9
    kill -KILL "$(rank_process "$rank")"
    tail -n 26 "$scratch/three.in" >&9
    # The end of the input is the end of its last writer.
    exec 9>&-
    ended
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
    expect "$name: workers lost" 1 "$(value "$name" times_lost)"
    expect "$name: failed" 0 "$(value "$name" failed)"
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
}

lose prefill-2 2
lose decode 3
lose another 4
lose prefill 1
finish
