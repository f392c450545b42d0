#!/usr/bin/env bash
# A job over several hosts, with tcp between them: ranks of other hosts are
# started anew and join without MPI; links are cut and come back. The output
# stays what it was.
#
# usage: test_hosts.sh AKIN CHECK SCRATCH [CASE...]
# Cases and conditions are called by name.
# shellcheck disable=SC2317
# shellcheck source=tests/fault/hosts.sh
. "$(dirname "$0")/hosts.sh"
hosts_enter "$0" "$@"
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"
cases=("${@:4}")
[ ${#cases[@]} -gt 0 ] ||
    cases=(kill_decode kill_prefill blink cut cut_some
        cut_long cut_for_good part part_for_good)

hosts_up 3
make_command "$scratch/akin" "$akin"
akin=$scratch/akin

timeout_s=2 # net.heartbeat_timeout

many_prompts 8
input=$scratch/all.in
hosts_ranks 4
run base
expect "base: exit code" 0 "$code"
[ "$code" -eq 0 ] || finish

# begin NAME [AKIN-RUN-ARGUMENT...]: a job that has answered a few requests and
# gets more.
begin() {
    name=$1
    shift
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    n_fed=0
    feed 12
    input=$scratch/pipe start "$name" --ordered "$@" 9>&-
    wait_until 60 has_lines "$scratch/$name.jsonl" 4 ||
        fail "$name: it does not begin"
}

# feed_for SECONDS COMMAND...: a few requests at a time, until the command
# succeeds.
feed_for() {
    local tries=$(($1 * 20)) answered
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] && ! has_ended || return 1
        answered=$(wc -l <"$scratch/$name.jsonl")
        if [ $((n_fed - answered)) -lt 12 ] && [ "$n_fed" -lt "$n_all" ]; then
            feed 2
        fi
        sleep 0.05
    done
}

# says TEXT [N]: the job has said so, as often.
says() {
    [ "$(grep -cE -- "$1" "$scratch/$name.err")" -ge "${2:-1}" ]
}

# await SECONDS TEXT [N]
await() {
    feed_for "$1" says "$2" "${3:-1}" ||
        fail "$name: not ${3:-1} times in $1 s: $2"
}

# complete SECONDS [COMMAND...]: the job ends in that time, with the right
# answers; the command is for before its last process has to be gone.
complete() {
    [ $((n_all - n_fed)) -lt 12 ] || feed 12
    exec 9>&-
    ended_in "$name" "$1"
    shift
    "$@"
    expect "$name: exit code" 0 "$code"
    head -n "$n_fed" "$scratch/base.jsonl" >"$scratch/$name.wanted"
    expect_same "$name" "$scratch/$name.wanted" "$scratch/$name.jsonl"
    expect "$name: failed" 0 "$(value "$name" failed)"
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
    echo "$name: $n_fed requests, $(value "$name" recovery.deaths) deaths," \
        "$(value "$name" recovery.recoveries) recoveries of at most" \
        "$(value "$name" recovery.recovery_s.max) s"
}

# expect_tcp: KV has gone over tcp.
expect_tcp() {
    expect "$name: one-sided reads" 0 "$(value "$name" kv_reads_one_sided)"
    [ "$(value "$name" kv_reads_rendezvous)" -gt 0 ] ||
        fail "$name: no KV was read"
}

# h0: router, prefill 0; h1: decode 0, decode 1
kill_decode() {
    hosts_ranks 2 2
    begin kill-decode
    kill -KILL "$(rank_process 2)"
    await 10 'decode 0 is back after .* on rank 2, life 1'
    complete 30
    expect_tcp
    expect "$name: deaths" 1 "$(value "$name" recovery.deaths)"
}

kill_prefill() {
    hosts_ranks 2 2
    begin kill-prefill
    kill -KILL "$(rank_process 1)"
    await 10 'prefill 0 is back after .* on rank 1, life 1'
    complete 30
    expect_tcp
    expect "$name: deaths" 1 "$(value "$name" recovery.deaths)"
}

# A cut that is shorter than the deadline loses nobody.
blink() {
    hosts_ranks 2 2
    begin blink
    cut_link h1
    sleep 0.5
    mend_link h1
    feed_for 3 false
    complete 30
    expect "$name: deaths" 0 "$(value "$name" recovery.deaths)"
}

# All decode workers are behind the cut: the job waits for them.
cut() {
    hosts_ranks 2 2
    begin cut
    cut_link h1
    await $((timeout_s + 4)) 'decode rank . is lost' 2
    feed_for 3 false
    mend_link h1
    await 60 'decode . is back after' 2
    complete 30
    expect "$name: deaths" 2 "$(value "$name" recovery.deaths)"
}

# One is not, and the job goes on meanwhile.
cut_some() {
    hosts_ranks 3 2
    begin cut-some --set roles.decode=3
    cut_link h1
    await $((timeout_s + 4)) 'decode rank . is lost' 2
    feed_for 3 false
    mend_link h1
    await 60 'decode . is back after' 2
    complete 30
    expect "$name: deaths" 2 "$(value "$name" recovery.deaths)"
}

# Longer than workers wait for a router that is silent: they end, and their
# successors do not reach it until the links are back. One host has lost its
# link, which it sees, and the other one's packets vanish, which it does not.
cut_long() {
    hosts_ranks 3 1 1
    begin cut-long --set roles.decode=3
    cut_link h1
    part_hosts h0 h2
    await $((timeout_s + 4)) 'decode rank . is lost' 2
    sleep $((10 * timeout_s + 5))
    mend_link h1
    unite_hosts h0 h2
    await 60 'decode . is back after' 2
    await 10 'does not reach the router'
    complete 30
    expect "$name: deaths" 2 "$(value "$name" recovery.deaths)"
}

# The link does not come back.
cut_for_good() {
    hosts_ranks 3 2
    begin cut-for-good --set roles.decode=3
    cut_link h1
    await $((timeout_s + 4)) 'decode rank . is lost' 2
    complete 40 mend_link h1
    expect "$name: deaths" 2 "$(value "$name" recovery.deaths)"
}

# h0: router, prefill 0; h1: prefill 1, decode 0; h2: decode 1. The router sees
# them all, but prefill 1 and decode 1 do not see each other: what has to go
# between them begins again.
part() {
    hosts_ranks 2 2 1
    begin part --set roles.prefill=2 --set net.transfer_timeout=1s
    part_hosts h1 h2
    await 20 'starts again' 3
    unite_hosts h1 h2
    complete 40
}

part_for_good() {
    hosts_ranks 2 2 1
    begin part-for-good --set roles.prefill=2 --set net.transfer_timeout=1s
    part_hosts h1 h2
    await 20 'starts again' 3
    complete 60 unite_hosts h1 h2
}

for case in "${cases[@]}"; do
    $case
done
finish
