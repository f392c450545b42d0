#!/usr/bin/env bash
# A worker that loses a rank is lost as a whole: its other ranks end in time,
# each with one line, and other workers give the same bytes.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

for round in 1 2 3; do
    sed "s/\"custom_id\": \"/&$round-/" "$prompts"
done >"$scratch/three.in"
input=$scratch/three.in
run base
expect "base: exit code" 0 "$code"

timeout_s=3
roles=(--set recovery.mode=shrink --set roles.prefill=2 --set roles.decode=2
    --set roles.ep=2 --set decode.max_batch=2
    --set "ep.timeout=${timeout_s}s")

# Called by name from within wait_for.
# shellcheck disable=SC2317
is_gone() {
    ! rank_process "$1" >/dev/null
}

# lose NAME RANK OTHER: kills the rank while its worker works; OTHER is of the
# same worker.
lose() {
    local name=$1 rank=$2 other=$3
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    head -n 26 "$scratch/three.in" >&9
    input=$scratch/pipe start "$name" "${roles[@]}" --ordered 9>&-
    wait_until 120 has_lines "$scratch/$name.jsonl" 26 ||
        fail "$name: it does not begin"
    head -n 52 "$scratch/three.in" | tail -n 26 >&9
    kill -KILL "$(rank_process "$rank")"
    wait_until $((timeout_s + 5)) is_gone "$other" ||
        fail "$name: rank $other is still there"
    tail -n 26 "$scratch/three.in" >&9
    exec 9>&-
    ended
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
    expect "$name: workers lost" 1 "$(value "$name" times_lost)"
    expect "$name: failed" 0 "$(value "$name" failed)"
    expect "$name: lines of rank $other" 1 \
        "$(grep -c "rank $other .*this worker ends: " "$scratch/$name.err")"
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
}

# Ranks: 1 2, 3 4 prefill; 5 6, 7 8 decode.
lose decode-member 6 5
lose decode-leader 7 8
lose prefill-member 2 1
finish
