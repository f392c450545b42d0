#!/usr/bin/env bash
# A run that is stopped with requests inside whose time to finish is over: they
# are left out, whatever their workers still send, and a resume does them.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

for i in {1..1200}; do
    printf '{"custom_id":"%s","method":"POST","url":"/v1/completions",' "$i"
    printf '"body":{"prompt":"The call %s","max_tokens":%s,' "$i" $((4 + i % 5))
    printf '"ignore_eos":true}}\n'
done >"$scratch/short.in"
input=$scratch/short.in
start stopped --set router.grace=0s
wait_until 60 has_lines "$scratch/stopped.jsonl" 50 || fail "it does not begin"
kill -INT "$launcher"
ended
expect "exit code" 4 "$code"
expect_quiet "stopped" "$scratch/stopped.err"
expect_none_left "stopped"
# Its end is one in order: the summary is there and nobody was lost.
expect "workers lost" 0 "$(value stopped times_lost)"
! grep -F 'was lost' "$scratch/stopped.err" || fail "a rank was lost"
! has_lines "$scratch/stopped.jsonl" 1200 || fail "it was not stopped"
resume stopped --resume
expect "exit code of the resume" 0 "$code"
expect "lines" 1200 "$(wc -l <"$scratch/stopped.jsonl")"
expect "ids" 1200 "$(grep -o '"custom_id": *"[^"]*"' \
    "$scratch/stopped.jsonl" | sort -u | wc -l)"
finish
