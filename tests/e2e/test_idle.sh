#!/usr/bin/env bash
# A job that waits for input sleeps: its 13 ranks and their supervisors use less
# than 2 % of a core together.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=5
input=$scratch/pipe
mkfifo "$input"
exec 9<>"$input"
head -n 10 "$prompts" >&9
start idle --set roles.prefill=4 --set roles.decode=8 9>&-
wait_until 120 has_lines "$scratch/idle.jsonl" 10 ||
    fail "idle: it does not begin"
expect "idle: processes" $((2 + 2 * 13)) "$(job_processes | wc -l)"

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

# What was computed last may still be in the queues.
sleep 1
before=$(used_ns)
sleep $seconds
after=$(used_ns)
permille=$(((after - before) / (seconds * 1000000)))
echo "used: $((before / 1000)) us, then $(((after - before) / 1000)) us"
[ "$before" -gt 0 ] || fail "idle: no figures"
echo "13 ranks that wait: $permille/1000 of a core"
[ "$permille" -lt 20 ] || {
    fail "idle: $permille/1000 of a core"
    for pid in $(job_processes); do
        echo "$pid $(cat "/proc/$pid/task"/*/schedstat | tr '\n' ';')" \
            "$(tr '\0' '\n' <"/proc/$pid/environ" | grep _WORLD_RANK)"
    done
}

# It still works.
tail -n +11 "$prompts" >&9
exec 9>&-
ended
expect "idle: exit code" 0 "$code"
expect "idle: answers, errors" "26 0" \
    "$("$check" lines "$scratch/idle.jsonl" 16 | cut -d' ' -f1,2)"
expect_none_left idle
finish
