#!/usr/bin/env bash
# The router is killed at random moments: a resumed run completes the output,
# with the same answers, each once.
#
# usage: test_router_kill.sh AKIN CHECK SCRATCH [RUNS [SEED]]
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"

runs=${4:-6}
seed=${5:-1}

many_prompts 8
two=(--set roles.prefill=2 --set roles.decode=2)
# Parts of the output are written all the time.
two+=(--set router.max_in_flight=16)

input=$scratch/all.in
run base "${two[@]}"
expect "base: exit code" 0 "$code"

# trickle: the input, over a second or more.
trickle() {
    local line
    while read -r line; do
        printf '%s\n' "$line"
        sleep 0.005
    done <"$scratch/all.in"
}

RANDOM=$seed
for ((n = 1; n <= runs; n++)); do
    name=kill-$n
    # The input has no end, or the job could have one before the kill.
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    trickle >&9 &
    writer=$!
    input=$scratch/pipe start "$name" "${two[@]}" 9>&-
    wait_until 60 rank_process 0 >/dev/null
    router=$(rank_process 0)
    # One in five while the job starts.
    since="it began"
    if [ $((RANDOM % 5)) -gt 0 ]; then
        since="its first line"
        wait_until 60 has_lines "$scratch/$name.jsonl" 1 ||
            fail "$name: it does not begin"
    fi
    moment=$(printf '%d.%03d' $((RANDOM % 2)) $((RANDOM % 1000)))
    sleep "$moment"
    kill -KILL "$router" || fail "$name: there is no router"
    ended_in "$name" 30
    kill "$writer" 2>/dev/null
    exec 9>&-
    expect "$name: exit code" 1 "$code"
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
    touch "$scratch/$name.jsonl"
    n_before=$(wc -l <"$scratch/$name.jsonl")
    input=$scratch/all.in resume "$name" --resume "${two[@]}"
    echo "run $n of seed $seed: killed $moment s after $since with $n_before" \
        "of $n_all lines written, $(wc -l <"$scratch/$name.jsonl") after the" \
        "resume"
    expect "$name: exit code of the resume" 0 "$code"
    expect_same_lines "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
done
finish
