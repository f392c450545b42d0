#!/usr/bin/env bash
# Starts a command on one of the hosts of hosts.sh, as mpirun's agent does by
# ssh: the command finds none of the environment of the one who asks.
#
# usage: host_agent.sh [OPTION...] HOST COMMAND...
set -eu
while [[ $1 == -* ]]; do
    shift
done
host=$1
shift
kept=(PATH="$PATH" HOME="${HOME:-/root}")
# What a test has to say to every rank, wherever it is.
while IFS= read -r -d '' item; do
    case $item in
    AKIN_FAULT* | AKIN_LOG=* | UCX_HANDLE_ERRORS=*) kept+=("$item") ;;
    ASAN_* | LSAN_* | UBSAN_* | TSAN_*) kept+=("$item") ;;
    esac
done </proc/self/environ
exec ip netns exec "$host" unshare --uts --ipc env -i "${kept[@]}" \
    bash -c "hostname $host && $*"
