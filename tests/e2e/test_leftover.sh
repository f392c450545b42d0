#!/usr/bin/env bash
# Whoever of a job is killed, nothing of it stays behind, and what was written
# is a valid output that a resume completes.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run base
expect "base: exit code" 0 "$code"

# left NAME CODE: after a kill: the launcher's code, the output, the resume.
left() {
    local name=$1
    ended
    exec 9>&-
    expect "$name: exit code" "$2" "$code"
    expect_quiet "$name" "$scratch/$name.err"
    mv "$scratch/$name.err" "$scratch/$name.end"
    expect_none_left "$name"
    input=$prompts resume "$name" --resume
    expect "$name: exit code of the resume" 0 "$code"
    expect_same_lines "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
}

# begin NAME: a run that waits for more input after ten answers.
begin() {
    input=$scratch/pipe
    rm -f "$input"
    mkfifo "$input"
    exec 9<>"$input"
    head -n 10 "$prompts" >&9
    start "$@" 9>&-
    wait_until 60 has_lines "$scratch/$1.jsonl" 10 ||
        fail "$1: it does not begin"
}

begin launcher
kill -KILL "$launcher"
left launcher 137

begin mpirun
kill -KILL "$(mpirun_process)"
left mpirun 1
expect_text mpirun "$scratch/mpirun.end" "mpirun was ended by signal 9"

begin router
kill -KILL "$(rank_process 0)"
left router 1
expect_text router "$scratch/router.end" "rank 0 (router) was lost: signal 9"

begin supervisor
kill -KILL "$(ps -o ppid= -p "$(rank_process 0)" | tr -d ' ')"
left supervisor 1

# The last decode rank: nobody can go on, which is said.
begin alone --set roles.decode=1 --set recovery.mode=shrink
kill -KILL "$(rank_process 2)"
left alone 1
expect_text alone "$scratch/alone.end" "no decode worker is left"
expect_text alone "$scratch/alone.end" "--resume"
finish
