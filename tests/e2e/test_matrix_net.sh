#!/usr/bin/env bash
# The output is the same over every transport, and the blocks take the path
# that the transport is for.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run base
expect "base: exit code" 0 "$code"
# paths NAME ONE-SIDED RENDEZVOUS: whether reads of a kind took place.
paths() {
    local one rendezvous
    one=$(value "$1" kv_reads_one_sided)
    rendezvous=$(value "$1" kv_reads_rendezvous)
    expect "$1: one-sided, rendezvous" "$2 $3" \
        "$((one > 0)) $((rendezvous > 0))"
}
paths base 1 0
for transports in tcp,self posix,self sysv,self posix,sysv,self; do
    UCX_TLS=$transports run "$transports"
    expect "$transports: exit code" 0 "$code"
    expect_same "$transports" "$scratch/base.jsonl" \
        "$scratch/$transports.jsonl"
done
paths tcp,self 0 1
paths posix,sysv,self 1 0
paths sysv,self 1 0
paths posix,self 1 0
finish
