#!/usr/bin/env bash
# Helpers of the end-to-end and fault tests; a test sources this file.
#
# usage of a test: test_NAME.sh AKIN CHECK SCRATCH
#   AKIN     the akin command
#   CHECK    the program made of check.c
#   SCRATCH  an empty folder of the test's own
set -u
akin=$1
check=$2
scratch=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$(cd "$here/../../examples/tiny-moe" && pwd)
prompts=$here/prompts.jsonl
n_failed=0

rm -rf "${scratch:?}"/*
mkdir -p "$scratch"
# A name that no other process has on its command line.
job=$scratch/job.conf
cat >"$job" <<JOB
model: { path = "$model"; };
roles: { prefill = 1; decode = 2; };
kv: { slab = "8MiB"; };
engine: { threads = 1; };
JOB

# The processes of this test's jobs: launcher, mpirun, supervisors, ranks.
job_processes() {
    pgrep -f -- "-c $job "
}

# Nothing of a job may outlive it, nor this script.
end_job() {
    local pid
    for pid in $(job_processes); do
        kill -KILL "$pid" 2>/dev/null
    done
    [ -z "${1:-}" ] || exit "$1"
}
trap 'end_job' EXIT
trap 'end_job 143' TERM INT HUP

fail() {
    echo "FAILED: $*"
    n_failed=$((n_failed + 1))
}

finish() {
    [ "$n_failed" -eq 0 ] || {
        echo "$n_failed checks failed"
        exit 1
    }
    exit 0
}

# wait_until SECONDS COMMAND...: whether it succeeded in that time.
wait_until() {
    local end=$((SECONDS + $1 + 1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

no_job_processes() {
    ! job_processes >/dev/null
}

# expect_none_left NAME: every process of the job is gone.
expect_none_left() {
    wait_until 30 no_job_processes || {
        fail "$1: processes are left:"
        ps -o pid,ppid,stat,args -p "$(job_processes | paste -sd,)"
        end_job
    }
}

# expect NAME WANTED GOT
expect() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# expect_same NAME FILE FILE
expect_same() {
    cmp "$2" "$3" || fail "$1: $2 and $3 differ"
}

# expect_same_lines NAME FILE FILE: in any order.
expect_same_lines() {
    cmp <(LC_ALL=C sort "$2") <(LC_ALL=C sort "$3") ||
        fail "$1: $2 and $3 have different lines"
}

# expect_text NAME FILE TEXT: the file has it.
expect_text() {
    grep -qF -- "$3" "$2" || {
        fail "$1: no '$3' in:"
        head -n 20 "$2"
    }
}

# expect_quiet NAME FILE: the launcher's own words do not reach the user, and no
# sanitizer has any.
expect_quiet() {
    if grep -nE 'Sanitizer|runtime error:' "$2"; then
        fail "$1: a sanitizer speaks"
    fi
    if grep -nE '^-{20,}|mpirun (detected|noticed)|Primary job' "$2"; then
        fail "$1: the launcher speaks"
    fi
}

# run NAME [AKIN-RUN-ARGUMENT...]: runs a batch with comparable output; sets
# code. Reads $input; leaves $scratch/NAME.jsonl, .json (summary), .err.
input=$prompts
run() {
    local name=$1
    shift
    rm -f "$scratch/$name.jsonl" "$scratch/$name.json"
    resume "$name" "$@"
}

# resume NAME [AKIN-RUN-ARGUMENT...]: as run, with the output as it is.
resume() {
    local name=$1
    shift
    "$akin" run -c "$job" -i "$input" -o "$scratch/$name.jsonl" \
        --ordered --deterministic-ids --summary "$scratch/$name.json" "$@" \
        2>"$scratch/$name.err"
    code=$?
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
}

# start NAME [AKIN-RUN-ARGUMENT...]: as run, in the background; sets launcher.
start() {
    local name=$1
    shift
    rm -f "$scratch/$name.jsonl" "$scratch/$name.json"
    "$akin" run -c "$job" -i "$input" -o "$scratch/$name.jsonl" \
        --deterministic-ids --summary "$scratch/$name.json" "$@" \
        2>"$scratch/$name.err" &
    launcher=$!
}

# ended: waits for what start() began; sets code.
ended() {
    wait "$launcher"
    code=$?
}

# has_lines FILE N: the file has that many lines at least.
has_lines() {
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# value NAME PATH: a figure of a run's summary.
value() {
    "$check" get "$scratch/$1.json" "$2"
}

# of_rank PID RANK: whether the process belongs to a rank.
of_rank() {
    tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" |
        grep -qx "OMPI_COMM_WORLD_RANK=$2"
}

# rank_process RANK: the process of a rank, which is not its supervisor.
rank_process() {
    local pid
    for pid in $(job_processes); do
        if of_rank "$pid" "$1" &&
            of_rank "$(ps -o ppid= -p "$pid" | tr -d ' ')" "$1"; then
            echo "$pid"
            return 0
        fi
    done
    return 1
}

# mpirun_process: the launcher's child.
mpirun_process() {
    pgrep -P "$launcher" -x mpirun
}
