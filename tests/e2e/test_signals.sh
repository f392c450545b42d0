#!/usr/bin/env bash
# SIGINT and SIGTERM to the launcher: running requests are finished, the output
# is valid, a resume completes it; a second signal ends the job at once.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run base
expect "base: exit code" 0 "$code"
input=$scratch/pipe

# feed NAME: a run whose input has n_fed lines and stays open.
feed() {
    rm -f "$input"
    mkfifo "$input"
    exec 9<>"$input"
    head -n "$n_fed" "$prompts" >&9
    start "$@" 9>&-
}

n_fed=10
for signal in INT TERM; do
    feed "$signal"
    wait_until 60 has_lines "$scratch/$signal.jsonl" 3 ||
        fail "$signal: no lines come"
    kill "-$signal" "$launcher"
    ended
    exec 9>&-
    expect "$signal: exit code" 4 "$code"
    expect_quiet "$signal" "$scratch/$signal.err"
    expect_none_left "$signal"
    "$check" lines "$scratch/$signal.jsonl" 16 >"$scratch/lines" ||
        fail "$signal: the output is not valid"
    # Every line that is there is final.
    n=$(sort "$scratch/base.jsonl" | comm -12 - <(sort \
        "$scratch/$signal.jsonl") | wc -l)
    expect "$signal: lines as without it" \
        "$(wc -l <"$scratch/$signal.jsonl")" "$n"
    input=$prompts resume "$signal" --resume
    expect "$signal: exit code of the resume" 0 "$code"
    expect_same_lines "$signal" "$scratch/base.jsonl" "$scratch/$signal.jsonl"
done

# What takes long: answers of 900 tokens, one at a time, and an hour to finish
# them in.
for i in {1..40}; do
    printf '{"custom_id":"%s","method":"POST","url":"/v1/completions",' "$i"
    printf '"body":{"prompt":"The call","max_tokens":900,"ignore_eos":true}}\n'
done >"$scratch/long.in"
for signals in "INT INT" "TERM INT"; do
    input=$scratch/long.in start twice --set router.grace=1h \
        --set decode.max_batch=1
    wait_until 60 has_lines "$scratch/twice.jsonl" 1 ||
        fail "twice: it does not begin"
    for signal in $signals; do
        kill "-$signal" "$launcher"
        sleep 0.3
    done
    ended
    expect "twice: exit code" 4 "$code"
    expect_quiet "twice" "$scratch/twice.err"
    expect_none_left "twice"
    ! has_lines "$scratch/twice.jsonl" 40 || fail "twice: it went on"
    "$check" lines "$scratch/twice.jsonl" 16 >"$scratch/lines" ||
        fail "twice: the output is not valid"
done

# A signal while the job starts is not lost, whenever it comes.
input=$scratch/pipe
n_fed=1
for delay in 0 0.05 0.1 0.2 0.3 0.5 0.8; do
    feed "early-$delay"
    wait_until 60 mpirun_process >/dev/null
    sleep "$delay"
    kill -INT "$launcher"
    ended
    exec 9>&-
    expect "early $delay: exit code" 4 "$code"
    expect_quiet "early $delay" "$scratch/early-$delay.err"
    expect_none_left "early $delay"
done
finish
