#!/usr/bin/env bash
# Helpers of the fault tests: jobs with faults at named points. A test sources
# this file; it is called as the end-to-end tests are.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
# shellcheck disable=SC2034
points=$(dirname "${BASH_SOURCE[0]}")/points

# many_prompts ROUNDS: the prompts so many times, as $scratch/all.in.
many_prompts() {
    local round
    for ((round = 1; round <= $1; round++)); do
        sed "s/\"custom_id\": \"/&$round-/" "$prompts"
    done >"$scratch/all.in"
    n_all=$(wc -l <"$scratch/all.in")
}

# feed N: the next lines for the job that reads from descriptor 9.
feed() {
    sed -n "$((n_fed + 1)),$((n_fed + $1))p" "$scratch/all.in" >&9
    n_fed=$((n_fed + $1))
}

# log_pattern ITEM: the line that the log has when the fault has happened.
log_pattern() {
    local who=${1%%:*} what=${1#*:}
    [[ $who == *.* ]] || who+=.0
    echo "^${who/./\\.} [a-z]+ ${what%%#*} ${what#*=}\$"
}

# join_items ITEM...: as AKIN_FAULT has them.
join_items() {
    local IFS=,
    echo "$*"
}

# is_last_word ITEM: its point comes only when the job has no more input.
is_last_word() {
    [[ $1 =~ \.(STOP|STATS|EP_END)# ]]
}

# has_ended: what start() began runs no more.
has_ended() {
    case $(ps -o stat= -p "$launcher") in
    '' | Z*) return 0 ;;
    esac
    return 1
}

# How much longer things take under a sanitizer, which looks for leaks in every
# process that ends.
slowness=1
case ${AKIN_SANITIZE:-} in
Asan | Tsan | Ubsan) slowness=8 ;;
esac

# ended_in NAME SECONDS: as ended(), but a job that takes longer is a failure,
# and is ended.
ended_in() {
    wait_until $(($2 * slowness)) has_ended || {
        fail "$1: it has not ended after $(($2 * slowness)) s"
        ps -o pid,ppid,stat,etime,args -p "$(job_processes | paste -sd,)"
        end_job
    }
    ended
}

# Requests that a job has at a time.
in_flight=12
# Faults that may happen, or not.
also=

# all_happened NAME: whether the job has no fault to wait for any more.
all_happened() {
    local awaited=$scratch/$1.awaited
    [ ! -s "$awaited" ] ||
        [ "$(grep -cEf "$awaited" "$scratch/$1.log")" -ge \
            "$(wc -l <"$awaited")" ]
}

# disturb NAME FAULTS [AKIN-RUN-ARGUMENT...]: a job that is fed until all of
# its faults have happened, and whose output has to be that of the undisturbed
# one, $scratch/base.jsonl. The faults are items of AKIN_FAULT with spaces
# between them. Leaves $scratch/NAME.log, .err, .json, .jsonl.
disturb() {
    local name=$1 log=$scratch/$1.log items item answered until
    read -rd '' -a items <<<"$2"
    shift 2
    for item in "${items[@]}"; do
        is_last_word "$item" || log_pattern "$item"
    done >"$scratch/$name.awaited"
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    : >"$log"
    n_fed=0
    feed "$in_flight"
    # shellcheck disable=SC2086
    AKIN_FAULT=$(join_items "${items[@]}" $also) AKIN_FAULT_LOG=$log \
        input=$scratch/pipe start "$name" --ordered "$@" 9>&-
    # Few at a time: there has to be work when a later life comes.
    until=$((SECONDS + 40 * slowness))
    while [ $SECONDS -lt $until ] && ! has_ended; do
        answered=$(wc -l 2>/dev/null <"$scratch/$name.jsonl") || answered=0
        [ "$answered" -eq 0 ] || ! all_happened "$name" || break
        [ $((n_fed - answered)) -ge "$in_flight" ] ||
            [ "$n_fed" -ge "$n_all" ] || feed 2
        sleep 0.05
    done
    exec 9>&-
    ended_in "$name" 60
    expect "$name: exit code" 0 "$code"
    head -n "$n_fed" "$scratch/base.jsonl" >"$scratch/$name.wanted"
    expect_same "$name" "$scratch/$name.wanted" "$scratch/$name.jsonl"
    expect "$name: failed" 0 "$(value "$name" failed)"
    for item in "${items[@]}"; do
        grep -qE "$(log_pattern "$item")" "$log" ||
            fail "$name: $item has not happened"
    done
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
}
