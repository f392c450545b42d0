#!/usr/bin/env bash
# A full disk ends the run with a message; what was written is valid, and a
# resume goes on from there.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

disk=$scratch/disk
mkdir "$disk"
mount -t tmpfs -o size=64k tmpfs "$disk" 2>"$scratch/mount.err" || {
    echo "skipped: $(cat "$scratch/mount.err")"
    exit 77
}
trap 'end_job; umount "$disk"' EXIT

for round in {1..8}; do
    sed "s/\"custom_id\": \"/&$round-/" "$prompts"
done >"$scratch/many.in"
input=$scratch/many.in
run base
expect "base: exit code" 0 "$code"
[ "$(wc -c <"$scratch/base.jsonl")" -gt 65536 ] || fail "base: it would fit"

"$akin" run -c "$job" -i "$input" -o "$disk/out.jsonl" --ordered \
    --deterministic-ids 2>"$scratch/full.err"
expect "full: exit code" 1 $?
expect_text "full" "$scratch/full.err" "$disk/out.jsonl"
expect_text "full" "$scratch/full.err" "No space left"
expect_quiet "full" "$scratch/full.err"
expect_none_left "full"
n=$("$check" ids "$disk/out.jsonl" | wc -l)
[ "$n" -gt 0 ] || fail "full: nothing was written"
head -n "$n" "$scratch/base.jsonl" | cmp - "$disk/out.jsonl" ||
    fail "full: it is no prefix of the whole output"

# To the same place it fails again and spoils nothing.
cp "$disk/out.jsonl" "$scratch/again.jsonl"
"$akin" run -c "$job" -i "$input" -o "$disk/out.jsonl" --ordered \
    --deterministic-ids --resume 2>"$scratch/again.err"
expect "again: exit code" 1 $?
n=$("$check" ids "$disk/out.jsonl" | wc -l)
head -n "$n" "$scratch/base.jsonl" | cmp - "$disk/out.jsonl" ||
    fail "again: it is no prefix of the whole output"
resume again --resume
expect "resume: exit code" 0 "$code"
expect_same "resume" "$scratch/base.jsonl" "$scratch/again.jsonl"

# So does a full disk under the summary, after the answers are safe.
rm "$disk/out.jsonl"
head -c 65536 /dev/zero >"$disk/fill" 2>/dev/null
run summary --summary "$disk/summary.json"
expect "summary: exit code" 1 "$code"
expect_text "summary" "$scratch/summary.err" "$disk/summary.json"
expect_same "summary" "$scratch/base.jsonl" "$scratch/summary.jsonl"
finish
