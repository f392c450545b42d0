#!/usr/bin/env bash
# An output cut anywhere is completed by --resume: the same lines, each once.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Errors, too, are answers that are not given twice.
{
    head -n 12 "$prompts"
    echo 'not json'
    tail -n +13 "$prompts"
    head -n 1 "$prompts"
} >"$scratch/all.in"
input=$scratch/all.in
run base
expect "base: exit code" 3 "$code"
bytes=$(wc -c <"$scratch/base.jsonl")
fourth=$(head -n 4 "$scratch/base.jsonl" | wc -c)

for cut in 0 1 "$((fourth - 1))" "$fourth" "$((fourth + 1))" \
    "$((bytes / 2))" "$((bytes - 1))" "$bytes"; do
    head -c "$cut" "$scratch/base.jsonl" >"$scratch/cut-$cut.jsonl"
    resume "cut-$cut" --resume
    expect "cut at $cut: exit code" 3 "$code"
    expect_same_lines "cut at $cut" "$scratch/base.jsonl" \
        "$scratch/cut-$cut.jsonl"
done
# A whole output is not touched.
expect_same "whole" "$scratch/base.jsonl" "$scratch/cut-$bytes.jsonl"

# Lines that are missing in the middle come at the end.
sed '3d;9d;20d' "$scratch/base.jsonl" >"$scratch/holes.jsonl"
resume holes --resume
expect "holes: exit code" 3 "$code"
expect_same_lines "holes" "$scratch/base.jsonl" "$scratch/holes.jsonl"

# What is no output of a run is not taken for one.
echo '{"some":"thing else"}' >"$scratch/other.jsonl"
resume other --resume
expect "no output: exit code" 1 "$code"
expect_text "no output" "$scratch/other.err" "other.jsonl"
expect "no output" '{"some":"thing else"}' "$(cat "$scratch/other.jsonl")"
finish
