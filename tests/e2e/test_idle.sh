#!/usr/bin/env bash
# A job that waits for input sleeps: its 13 ranks and their supervisors use less
# than 2 % of a core together.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=5

# used_ns: what all threads of the job have run, in nanoseconds.
used_ns() {
    local pid
    for pid in $(job_processes); do
        cat "/proc/$pid/task"/*/schedstat
    done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}
[ -r /proc/self/schedstat ] || {
    echo "skipped: this kernel has no /proc/PID/schedstat"
    exit 77
}

# sleeps NAME [ARGUMENT...]: a job of 13 ranks, with what makes it so.
sleeps() {
    local name=$1 before after permille
    shift
    input=$scratch/pipe
    rm -f "$input"
    mkfifo "$input"
    exec 9<>"$input"
    head -n 10 "$prompts" >&9
    start "$name" "$@" 9>&-
    wait_until 120 has_lines "$scratch/$name.jsonl" 10 ||
        fail "$name: it does not begin"
    expect "$name: processes" $((2 + 2 * 13)) "$(job_processes | wc -l)"
    # What was computed last may still be in the queues.
    sleep 1
    before=$(used_ns)
    sleep $seconds
    after=$(used_ns)
    permille=$(((after - before) / (seconds * 1000000)))
    echo "used: $((before / 1000)) us, then $(((after - before) / 1000)) us"
    [ "$before" -gt 0 ] || fail "$name: no figures"
    echo "13 ranks that wait: $permille/1000 of a core"
    [ "$permille" -lt 20 ] || {
        fail "$name: $permille/1000 of a core"
        for pid in $(job_processes); do
            echo "$pid $(cat "/proc/$pid/task"/*/schedstat | tr '\n' ';')" \
                "$(tr '\0' '\n' <"/proc/$pid/environ" | grep _WORLD_RANK)"
        done
    }

    # It still works.
    tail -n +11 "$prompts" >&9
    exec 9>&-
    ended
    expect "$name: exit code" 0 "$code"
    expect "$name: answers, errors" "26 0" \
        "$("$check" lines "$scratch/$name.jsonl" 16 | cut -d' ' -f1,2)"
    expect_none_left "$name"
}

sleeps idle --set roles.prefill=4 --set roles.decode=8
# Workers of several ranks step together, or not at all.
sleeps groups --set roles.prefill=2 --set roles.decode=4 --set roles.ep=2
finish
