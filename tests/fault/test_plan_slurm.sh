#!/usr/bin/env bash
# The batch script that akin plan writes for Slurm: it runs, over two nodes, and
# what the time limit cuts off is done after the requeue.
#
# usage: test_plan_slurm.sh AKIN CHECK SCRATCH [CASE...]
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
[ ${#cases[@]} -gt 0 ] || cases=(submit mpirun time_limit wrong_nodes wrong_hosts
        wrong_cores)

hosts_up 2
hosts_ranks 4
plain_akin=$akin
make_command "$scratch/akin-mpirun" "$akin"
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

# plan FILE [ARGUMENT...]: the batch script, made on a node.
plan() {
    local file=$1
    shift
    (on_host h0 "$plain_akin" plan -c "$job" --nodes 2 --emit slurm "$@") \
        >"$file" || fail "akin plan: exit code $?"
}

# submit_script NAME [SBATCH-OPTION...]: runs the script until it has ended; its
# exit code in $code.
submit_script() {
    local name=$1
    shift
    rm -f "$scratch/$name.jsonl"
    (on_host h0 env -u OMPI_MCA_orte_default_hostfile sbatch --wait \
        --output="$scratch/$name.err" "$@" "$scratch/$name.sbatch" "$input" \
        "$scratch/$name.jsonl" --deterministic-ids \
        --summary "$scratch/$name.json") >/dev/null
    code=$?
}

submit() {
    plan "$scratch/submit.sbatch"
    submit_script submit
    expect "submit: exit code" 0 "$code"
    expect_same_lines "submit" "$scratch/base.jsonl" "$scratch/submit.jsonl"
    expect "submit: hosts" 2 "$(value submit transports.hosts)"
    expect_none_left "submit"
}

# Slurm without PMIx has mpirun start the ranks.
mpirun() {
    plan "$scratch/mpirun.sbatch"
    sed -i 's/^if srun --mpi=list.*/if false; then/' "$scratch/mpirun.sbatch"
    submit_script mpirun
    expect "mpirun: exit code" 0 "$code"
    expect_same_lines "mpirun" "$scratch/base.jsonl" "$scratch/mpirun.jsonl"
    expect_none_left "mpirun"
}

# Slurm tells the job about its limit when it looks for such jobs, every 30 s;
# the job takes longer than that.
time_limit() {
    local k faults=() n_runs
    for ((k = 1; k <= 24; k++)); do
        faults+=("1:before-send.PREFILLED#$((k * 5))=sleep-1900")
    done
    plan "$scratch/time_limit.sbatch" --set launch.time_limit=1min \
        --set launch.stop_before=20s --set net.heartbeat_timeout=60s
    # What is left is not slow.
    # shellcheck disable=SC2016
    sed -i 's/^set -u$/&; [ -z "${SLURM_RESTART_COUNT:-}" ] || unset AKIN_FAULT/' \
        "$scratch/time_limit.sbatch"
    # shellcheck disable=SC2030
    (
        AKIN_FAULT=$(join_items "${faults[@]}")
        export AKIN_FAULT
        submit_script time_limit
        echo "$code" >"$scratch/time_limit.code"
    ) &
    launcher=$!
    ended_in time_limit 150
    expect "time_limit: exit code" 0 "$(cat "$scratch/time_limit.code")"
    n_runs=$(grep -c 'ready in' "$scratch/time_limit.err")
    [ "$n_runs" -ge 2 ] || fail "time_limit: $n_runs runs"
    echo "time_limit: $n_runs runs"
    expect_same_lines "time_limit" "$scratch/base.jsonl" \
        "$scratch/time_limit.jsonl"
    expect_none_left "time_limit"
}

# The job has fewer nodes than the plan.
wrong_nodes() {
    plan "$scratch/wrong_nodes.sbatch"
    submit_script wrong_nodes --nodes=1
    expect "wrong_nodes: exit code" 2 "$code"
    expect_text "wrong_nodes" "$scratch/wrong_nodes.err" \
        "the plan is for 2 nodes, but the job has 1"
    [ ! -e "$scratch/wrong_nodes.jsonl" ] || fail "wrong_nodes: it has begun"
}

# Ranks are not on the nodes that the plan has them on.
wrong_hosts() {
    plan "$scratch/wrong_hosts.sbatch"
    sed -i 's/^for node in .*; do/for node in 0 0 1 1; do/' \
        "$scratch/wrong_hosts.sbatch"
    submit_script wrong_hosts
    expect "wrong_hosts: exit code" 2 "$code"
    expect_text "wrong_hosts" "$scratch/wrong_hosts.err" "the plan has rank"
    [ ! -e "$scratch/wrong_hosts.jsonl" ] || fail "wrong_hosts: it has begun"
    expect_none_left "wrong_hosts"
}

# A node has fewer cores than the plan: nothing is started.
wrong_cores() {
    plan "$scratch/wrong_cores.sbatch"
    sed -i 's/"cores": "1"/"cores": "500"/' "$scratch/wrong_cores.sbatch"
    submit_script wrong_cores
    expect "wrong_cores: exit code" 2 "$code"
    expect_text "wrong_cores" "$scratch/wrong_cores.err" "on cores 500 of h"
    [ ! -e "$scratch/wrong_cores.jsonl" ] || fail "wrong_cores: it has begun"
    expect_none_left "wrong_cores"
}

for case in "${cases[@]}"; do
    $case
done
finish
