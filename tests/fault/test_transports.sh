#!/usr/bin/env bash
# What KV travels over between hosts that have nothing but tcp: the job says so,
# measures it, and does not begin where it is told to want RDMA.
#
# usage: test_transports.sh AKIN CHECK SCRATCH
# shellcheck source=tests/fault/hosts.sh
. "$(dirname "$0")/hosts.sh"
hosts_enter "$0" "$@"
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"

hosts_up 2
make_command "$scratch/akin" "$akin"
akin=$scratch/akin

many_prompts 1
input=$scratch/all.in
warning='akin: warning: KV between hosts goes over tcp'

# says NAME PATTERN: the job has said so on one line.
says() {
    grep -qE -- "$2" "$scratch/$1.err" || {
        fail "$1: nothing like '$2' in:"
        head -n 20 "$scratch/$1.err"
    }
}

# says_not NAME PATTERN
says_not() {
    ! grep -nE -- "$2" "$scratch/$1.err" || fail "$1: it says '$2'"
}

# moved NAME: all requests were answered, with the same answers.
moved() {
    expect "$1: exit code" 0 "$code"
    expect_same "$1" "$scratch/alone.jsonl" "$scratch/$1.jsonl"
}

# All ranks on h0: no pair leaves the host, so that RDMA is not missed.
hosts_ranks 4
run alone --set launch.require_rdma=true --set launch.probe=true
expect "alone: exit code" 0 "$code"
says alone '^akin: KV over sysv on one host$'
says alone '^akin: KV bandwidth on one host: [0-9.]+ to [0-9.]+ GB/s, '
says_not alone 'warning: KV .* goes over|between hosts'
expect "alone: hosts" 1 "$(value alone transports.hosts)"
expect "alone: pairs" 2 "$(value alone transports.pairs.sysv.on_one_host)"
expect "alone: probed" 2 "$(value alone transports.probe.on_one_host.pairs)"

# h0: router, prefill 0; h1: decode 0, decode 1
hosts_ranks 2 2
run apart --set launch.probe=true
moved apart
says apart '^prefill .* decode +h1'
says apart '^h0 +tcp'
says apart "^$warning in 2 of 2 pairs, as between rank 1 \(prefill 0, host h0, \
tcp/wire\) and rank 2 \(decode 0, host h1, tcp/wire\): no host of the job has \
an RDMA device$"
expect "apart: warnings" 1 "$(grep -c "$warning" "$scratch/apart.err")"
says apart '^akin: KV bandwidth between hosts: [0-9.]+ to [0-9.]+ GB/s, median .* of 2 pairs$'
expect "apart: hosts" 2 "$(value apart transports.hosts)"
expect "apart: pairs" 2 "$(value apart transports.pairs.tcp.between_hosts)"
expect "apart: fall-backs" 2 \
    "$(value apart transports.fallbacks.between_hosts)"
expect "apart: probed" 2 "$(value apart transports.probe.between_hosts.pairs)"
expect "apart: one-sided reads" 0 "$(value apart kv_reads_one_sided)"
[ "$(value apart kv_reads_rendezvous)" -gt 0 ] || fail "apart: no KV was read"

# h0: router, prefill 0, decode 0; h1: decode 1
hosts_ranks 3 1
run mixed
moved mixed
says mixed '^prefill .* decode +h0 +h1'
says mixed '^h0 +sysv +tcp'
says mixed "^$warning in 1 of 1 pairs"
says_not mixed 'KV on one host goes over'
expect "mixed: on one host" 1 "$(value mixed transports.pairs.sysv.on_one_host)"
expect "mixed: between hosts" 1 \
    "$(value mixed transports.pairs.tcp.between_hosts)"

# refuses NAME [AKIN-RUN-ARGUMENT...]: nothing is started; both ends are named.
refuses() {
    run "$@" --set launch.require_rdma=true
    expect "$1: exit code" 2 "$code"
    says "$1" '^akin: launch.require_rdma: KV between hosts goes over tcp in .*'\
'rank 1 \(prefill 0, host h0, tcp/wire\) and rank [23] \(decode [01], '\
'host h1, tcp/wire\): no host of the job has an RDMA device'
    expect "$1: said once" 1 "$(grep -c require_rdma "$scratch/$1.err")"
    says_not "$1" 'ready in|KV bandwidth'
    [ ! -s "$scratch/$1.jsonl" ] || fail "$1: it has answered"
}

refuses refused --set launch.probe=true
hosts_ranks 2 2
refuses refused-apart
finish
