#!/usr/bin/env bash
# Jobs that run where a plan has them: from the emitted script, and from
# akin run --plan; the output is that of any job. What a plan asks for and is not
# there is told before anything starts.
#
# usage: test_plan.sh AKIN CHECK SCRATCH
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

cat >>"$job" <<JOB
launch: { oversubscribe = true; };
JOB
input=$prompts
run base
expect "base: exit code" 0 "$code"

# The script as it is.
"$akin" plan -c "$job" --emit mpirun -i "$input" -o "$scratch/script.jsonl" \
    >"$scratch/script.sh" || fail "akin plan: exit code $?"
bash "$scratch/script.sh" --ordered --deterministic-ids \
    2>"$scratch/script.err"
expect "script: exit code" 0 $?
expect_same "script" "$scratch/base.jsonl" "$scratch/script.jsonl"
expect_none_left "script"

# Paths are arguments where it has none; a signal stops it in order.
"$akin" plan -c "$job" --emit mpirun >"$scratch/stop.sh"
bash "$scratch/stop.sh" 2>"$scratch/stop.err"
expect "usage: exit code" 2 $?
expect_text "usage" "$scratch/stop.err" "IN.jsonl OUT.jsonl"
mkfifo "$scratch/pipe"
exec 9<>"$scratch/pipe"
head -n 6 "$input" >&9
bash "$scratch/stop.sh" "$scratch/pipe" "$scratch/stop.jsonl" \
    --deterministic-ids 2>"$scratch/stop.err" 9>&- &
script=$!
wait_until 60 has_lines "$scratch/stop.jsonl" 2 || fail "stop: it does not begin"
kill -TERM "$script"
wait "$script"
expect "stop: exit code" 4 $?
exec 9>&-
expect_none_left "stop"
bash "$scratch/stop.sh" "$input" "$scratch/stop.jsonl" --deterministic-ids \
    --resume 2>"$scratch/stop.err"
expect "stop: exit code of the resume" 0 $?
expect_same_lines "stop" "$scratch/base.jsonl" "$scratch/stop.jsonl"

# Ranks are on the plan's cores, with its threads; a later life is, too.
plan=$scratch/right.plan
"$akin" plan -c "$job" --json >"$plan" || fail "akin plan --json: exit code $?"
run plan --plan "$plan"
expect "plan: exit code" 0 "$code"
expect_same "plan" "$scratch/base.jsonl" "$scratch/plan.jsonl"
sed -E 's/"cores": "[^"]*"/"cores": "0"/g' "$plan" >"$scratch/first.plan"
rm -f "$scratch/pipe"
mkfifo "$scratch/pipe"
exec 9<>"$scratch/pipe"
head -n 4 "$input" >&9
input=$scratch/pipe start first --plan "$scratch/first.plan" 9>&-
wait_until 60 has_lines "$scratch/first.jsonl" 1 ||
    fail "first: it does not begin"
# A rank's process is the only child of its supervisor.
n_bound=0
for pid in $(job_processes); do
    if [ -z "$(pgrep -P "$pid")" ] &&
        tr '\0' '\n' <"/proc/$pid/environ" | grep -q ^OMPI_COMM_WORLD_RANK=; then
        expect "first: cores of process $pid" 0 \
            "$(awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$pid/status")"
        n_bound=$((n_bound + 1))
    fi
done
expect "first: ranks that are bound" 4 "$n_bound"
exec 9>&-
ended
expect "first: exit code" 0 "$code"

# refused NAME TEXT: the job ends at once and says so; there is no output.
refused() {
    run "$1" --plan "$scratch/$1.plan"
    expect "$1: exit code" 2 "$code"
    expect_text "$1" "$scratch/$1.err" "$2"
    [ ! -e "$scratch/$1.jsonl" ] || fail "$1: it has begun"
    expect_none_left "$1"
}
edit() {
    sed -E "$2" "$plan" >"$scratch/$1.plan"
    ! cmp -s "$plan" "$scratch/$1.plan" || fail "$1: the plan is as it was"
}
edit cores 's/"cores": "[0-9,-]*"/"cores": "0,500"/g'
refused cores "has this rank on cores 0,500 of $(hostname)"
edit nic 's/"nic": (null|"[^"]*")/"nic": "mlx5_77:1"/g'
refused nic "the NIC mlx5_77:1, which $(hostname) does not have"
edit gpu 's/"gpu": null/"gpu": 7/g'
refused gpu "GPU 7 of $(hostname), which has"
sed 's/"role": "decode"/"role": "docode"/' "$plan" >"$scratch/role.plan"
refused role "role: router, prefill, decode or spare is needed"
run ranks --plan "$plan" --set roles.decode=3
expect "ranks: exit code" 2 "$code"
expect_text "ranks" "$scratch/ranks.err" "the plan has 4 ranks, but the job has 5"
"$akin" run -c "$job" -i "$input" -o "$scratch/file.jsonl" \
    --plan /no/such.json 2>"$scratch/file.err"
expect "file: exit code" 1 $?
expect_text "file" "$scratch/file.err" "/no/such.json"

finish
