#!/usr/bin/env bash
# A running job is asked for its state and its metrics, its workers are drained,
# drained at once, and given work again: the answers are those of a run that
# nobody disturbed.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Sockets lie in a folder of this test's own, with a short path.
XDG_RUNTIME_DIR=$(mktemp -d "${TMPDIR:-/tmp}/akin-e2e-XXXXXX")
export XDG_RUNTIME_DIR
trap 'end_job; rm -rf "$XDG_RUNTIME_DIR"' EXIT

# Answers that take a while. Each part of the test has some of its own, so that
# there is work however fast the machine is.
portion=24
for i in {1..96}; do
    printf '{"custom_id":"%s","method":"POST","url":"/v1/completions",' "$i"
    printf '"body":{"prompt":"Number %s:","max_tokens":900,' "$i"
    printf '"temperature":0.8,"ignore_eos":true}}\n'
done >"$scratch/long.in"
input=$scratch/long.in
run base
expect "base: exit code" 0 "$code"

has_socket() {
    socket=$(ls "$XDG_RUNTIME_DIR"/akin/job-*.sock 2>/dev/null)
}

# ctl ARG...: akin ctl on the job; its output in $scratch/ctl.out, its code in
# ctl_code.
ctl() {
    ctl_code=0
    timeout 30 "$akin" ctl -S "$socket" "$@" >"$scratch/ctl.out" \
        2>"$scratch/ctl.err" || ctl_code=$?
}

# told NAME ARG...: the same; it must work.
told() {
    local name=$1
    shift
    ctl "$@"
    expect "$name: akin ctl $*" 0 "$ctl_code"
    [ ! -s "$scratch/ctl.err" ] || fail "$name: $(cat "$scratch/ctl.err")"
}

# figure PATH: of the job's status now.
figure() {
    timeout 30 "$akin" ctl -S "$socket" status --json >"$scratch/status.json" &&
        "$check" get "$scratch/status.json" "$1"
}

# is_at_least N PATH, is_now TEXT PATH: of the job's status now.
# shellcheck disable=SC2317 # wait_until calls it
is_at_least() {
    [ "$(figure "$2")" -ge "$1" ]
}
is_now() {
    [ "$(figure "$2")" = "$1" ]
}

# feed: the next portion of the requests.
feed() {
    tail -n +$((n_fed + 1)) "$scratch/long.in" | head -n "$portion" >&9
    n_fed=$((n_fed + portion))
}

# begin NAME ARG...: a job whose input stays open, with a first portion in it.
begin() {
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    n_fed=0
    feed
    input=$scratch/pipe start "$@" 9>&-
    wait_until 60 has_socket || fail "$1: there is no socket"
}

# end NAME: its output is that of the undisturbed run.
end() {
    exec 9>&-
    ended
    expect "$1: exit code" 0 "$code"
    expect_same_lines "$1" "$scratch/base.jsonl" "$scratch/$1.jsonl"
    expect "$1: workers lost" 0 "$(value "$1" times_lost)"
    expect "$1: failed" 0 "$(value "$1" failed)"
    expect_quiet "$1" "$scratch/$1.err"
    expect_none_left "$1"
    ! has_socket || fail "$1: the socket is left: $socket"
}

begin drained --set roles.prefill=2 --set roles.decode=3 \
    --set decode.max_batch=2
expect "mode of the socket" 600 "$(stat -c %a "$socket")"
expect "mode of its folder" 700 "$(stat -c %a "$(dirname "$socket")")"
# workers: prefill 0 and 1, decode 0 to 2.
wait_until 60 is_at_least 1 workers.3.requests || fail "decode 1 is idle"
told status status
expect_text status "$scratch/ctl.out" "decode 2"
expect_text status "$scratch/ctl.out" " done, 0 failed"

# What runs there finishes; nothing new comes although others wait.
told drain drain decode 1
expect_text drain "$scratch/ctl.out" "decode 1: draining"
wait_until 120 is_now drained workers.3.state || fail "it does not drain"
feed
# At once: what runs there goes on elsewhere.
wait_until 60 is_at_least 1 workers.4.requests || fail "decode 2 is idle"
told move drain decode:2 --move
expect_text move "$scratch/ctl.out" "decode 2: drained, 0 requests there, "
is_now 0 workers.3.requests || fail "the drained worker has requests"
# Not the last one.
ctl drain decode0
expect "last: code" 1 "$ctl_code"
expect_text last "$scratch/ctl.err" "no other decode worker serves"
expect "last: stdout" "" "$(cat "$scratch/ctl.out")"
# Prompts as well.
told prefill drain prefill1 --move
told resume resume decode1
feed
wait_until 60 is_at_least 1 workers.3.requests || fail "decode 1 stays idle"
told resume resume decode2
told resume resume "prefill 1"

told metrics metrics
if grep -vE '^# (HELP|TYPE) akin:[a-z0-9_]+ .+$|^akin:[a-z0-9_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")?\})? [0-9.e+-]+$' \
    "$scratch/ctl.out"; then
    fail "metrics: lines that are none"
fi
grep -qE '^akin:request_retries_total [1-9]' "$scratch/ctl.out" ||
    fail "metrics: no request was moved"
grep -qE '^akin:generation_tokens_total [1-9]' "$scratch/ctl.out" ||
    fail "metrics: no tokens"
grep -q '^akin:worker_deaths_total{worker="decode 1"} 0$' "$scratch/ctl.out" ||
    fail "metrics: deaths"

# No such worker.
ctl drain decode9
feed
expect "no such worker: code" 1 "$ctl_code"
expect_text "no such worker" "$scratch/ctl.err" "decode 0 to 2"
end drained
[ "$(value drained recovery.retries)" -ge 1 ] || fail "no retries are told"

# Workers of two ranks, and requests that may begin but once.
begin groups --set roles.decode=2 --set roles.ep=2 --set router.retries=0 \
    --set decode.max_batch=2
for worker in 0 1 0; do
    feed
    wait_until 60 is_at_least 1 "workers.$((1 + worker)).requests" ||
        fail "groups: decode $worker is idle"
    told groups drain "decode$worker" --move
    is_now drained "workers.$((1 + worker)).state" ||
        fail "groups: decode $worker is not drained"
    told groups resume "decode$worker"
done
end groups

# A socket that cannot be is told, and the job runs.
input=$prompts
rm -rf "$XDG_RUNTIME_DIR/akin"
mkdir -m 700 "$XDG_RUNTIME_DIR/other"
ln -s other "$XDG_RUNTIME_DIR/akin"
run link
expect "link: exit code" 0 "$code"
expect_text link "$scratch/link.err" "akin is a link"
rm "$XDG_RUNTIME_DIR/akin"
# And one that nobody wants.
run none --set router.socket=
expect "none: exit code" 0 "$code"
[ ! -e "$XDG_RUNTIME_DIR/akin" ] || fail "none: a folder was made"
expect_same "link, none" "$scratch/link.jsonl" "$scratch/none.jsonl"
finish
