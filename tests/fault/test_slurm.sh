#!/usr/bin/env bash
# A job that srun starts, over two nodes: ranks that are killed are started
# anew, the others stay, and the output stays what it was.
#
# usage: test_slurm.sh AKIN CHECK SCRATCH [CASE...]
# Cases and conditions are called by name.
# shellcheck disable=SC2317
# shellcheck source=tests/fault/slurm.sh
. "$(dirname "$0")/slurm.sh"
slurm_needed
# shellcheck source=tests/fault/hosts.sh
. "$(dirname "$0")/hosts.sh"
hosts_enter "$0" "$@"
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"
cases=("${@:4}")
[ ${#cases[@]} -gt 0 ] ||
    cases=(plain input errors kill_decode kill_prefill shrink cancel
        batch)

hosts_up 2
hosts_ranks 4
plain_akin=$akin
make_command "$scratch/akin-mpirun" "$akin"
# Ranks 0 and 1, router and prefill, are on h0; 2 and 3, decode, on h1.
make_command "$scratch/akin-srun" srun --nodes=2 --ntasks-per-node=2 \
    --mpi=pmix "$akin"

many_prompts 8
input=$scratch/all.in
akin=$scratch/akin-mpirun
run base
expect "base: exit code" 0 "$code"
[ "$code" -eq 0 ] || finish
slurm_up 2 || {
    echo "skipped: Slurm does not start here"
    exit 77
}
akin=$scratch/akin-srun

# srun knows ranks by another name.
of_rank() {
    tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | grep -qx "SLURM_PROCID=$2"
}

plain() {
    run plain
    expect "plain: exit code" 0 "$code"
    expect_same "plain" "$scratch/base.jsonl" "$scratch/plain.jsonl"
    expect "plain: one-sided reads" 0 "$(value plain kv_reads_one_sided)"
}

# The input comes through srun, which gives it to all ranks, and is longer than
# pipes and buffers are: ranks that do not read it must not hold it up.
input() {
    local wide
    wide=$(printf '%80000s' '')
    {
        sed "s/^{/{$wide/" "$scratch/all.in" | head -n 100
        tail -n +101 "$scratch/all.in"
    } >"$scratch/wide.in"
    rm -f "$scratch/input.jsonl"
    "$akin" run -c "$job" -i - -o "$scratch/input.jsonl" --ordered \
        --deterministic-ids <"$scratch/wide.in" 2>"$scratch/input.err" &
    launcher=$!
    ended_in input 60
    expect "input: exit code" 0 "$code"
    expect_same "input" "$scratch/base.jsonl" "$scratch/input.jsonl"
    expect_none_left "input"
}

# An error line has its exit code.
errors() {
    {
        echo '{"custom_id": "bad"}'
        head -n 12 "$scratch/all.in"
    } >"$scratch/errors.in"
    input=$scratch/errors.in run errors
    expect "errors: exit code" 3 "$code"
    expect "errors: failed" 1 "$(value errors failed)"
}

# lose NAME RANK PATTERN [AKIN-RUN-ARGUMENT...]: kills the rank while the job
# works, and waits until the job says that.
lose() {
    local name=$1 rank=$2 pattern=$3
    shift 3
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    n_fed=0
    feed 12
    input=$scratch/pipe start "$name" --ordered "$@" 9>&-
    wait_until 60 has_lines "$scratch/$name.jsonl" 4 ||
        fail "$name: it does not begin"
    kill -KILL "$(rank_process "$rank")"
    wait_until 20 grep -q "$pattern" "$scratch/$name.err" ||
        fail "$name: not in 20 s: $pattern"
    feed 24
    exec 9>&-
    ended_in "$name" 60
    expect "$name: exit code" 0 "$code"
    head -n "$n_fed" "$scratch/base.jsonl" >"$scratch/$name.wanted"
    expect_same "$name" "$scratch/$name.wanted" "$scratch/$name.jsonl"
    expect "$name: deaths" 1 "$(value "$name" recovery.deaths)"
    expect "$name: failed" 0 "$(value "$name" failed)"
    ! grep -n 'srun: \|slurmstepd' "$scratch/$name.err" ||
        fail "$name: the launcher speaks"
    expect_none_left "$name"
}

kill_decode() {
    lose kill-decode 2 'decode 0 is back after .* on rank 2, life 1'
}

kill_prefill() {
    lose kill-prefill 1 'prefill 0 is back after .* on rank 1, life 1'
}

# Its supervisor ends early, and srun goes on with the others.
shrink() {
    lose shrink 3 'rank 3 .*the job goes on without it' --set recovery.mode=shrink
}

# What is written when Slurm ends a job can be resumed.
cancel() {
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    n_fed=0
    feed 30
    input=$scratch/pipe start cancel 9>&-
    wait_until 60 has_lines "$scratch/cancel.jsonl" 4 ||
        fail "cancel: it does not begin"
    (on_host h0 scancel --signal=TERM "$(on_host h0 squeue -h -o %i)")
    ended_in cancel 40
    exec 9>&-
    expect "cancel: exit code" 4 "$code"
    expect_none_left cancel
    input=$scratch/all.in resume cancel --resume
    expect "cancel: exit code of the resume" 0 "$code"
    expect_same_lines "cancel" "$scratch/base.jsonl" "$scratch/cancel.jsonl"
}

# A batch script in which akin starts mpirun over the nodes of the allocation.
batch() {
    rm -f "$scratch/batch.jsonl"
    cat >"$scratch/batch.sh" <<SCRIPT
#!/usr/bin/env bash
#SBATCH --nodes=2 --ntasks-per-node=2 --output=$scratch/batch.err
unset OMPI_MCA_orte_default_hostfile
exec "$plain_akin" run -c "$job" -i "$scratch/all.in" \\
    -o "$scratch/batch.jsonl" --ordered --deterministic-ids
SCRIPT
    (on_host h0 sbatch --wait "$scratch/batch.sh" >/dev/null)
    expect "batch: exit code" 0 $?
    expect_same "batch" "$scratch/base.jsonl" "$scratch/batch.jsonl"
    expect_none_left "batch"
}

for case in "${cases[@]}"; do
    $case
done
finish
