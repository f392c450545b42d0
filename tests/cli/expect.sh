#!/usr/bin/env bash
# What the tests of the command share; to be sourced with the script's
# arguments: the akin binary, the json_value binary, the source folder.
set -uo pipefail

akin=$1
json_value=$2
top=$3
# For the scripts that source this one.
export model=$top/examples/tiny-moe
work=$(mktemp -d "${TMPDIR:-/tmp}/akin-cli-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
# In files, because a command substitution counts in a shell of its own.
: >"$work/failed"
: >"$work/ran"

# Threads that wait must not take the cores that others need.
export OMP_WAIT_POLICY=passive

# complain TEXT: note a failure and show what the command wrote.
complain() {
    {
        echo "FAILED: $1"
        echo "  stdout: $(head -c 300 "$work/out" | tr '\0' '?')"
        echo "  stderr: $(head -c 600 "$work/err" | tr '\0' '?')"
    } >&2
    echo "$1" >>"$work/failed"
}

# call ARG...: run akin; its code in $code, its output in $work/out and err.
call() {
    code=0
    echo "$*" >>"$work/ran"
    timeout -k 5 100 "$akin" "$@" </dev/null >"$work/out" 2>"$work/err" ||
        code=$?
}

# accept ARG...: the command must succeed and say nothing on stderr.
accept() {
    call "$@"
    [ "$code" -eq 0 ] || complain "akin $*: exit code $code, not 0"
    [ ! -s "$work/err" ] || complain "akin $*: text on stderr"
}

# refuse CODE TEXT ARG...: the command must fail with this code, write nothing
# on stdout, and say this on stderr (a fixed string), in a few lines.
refuse() {
    local want=$1 text=$2
    shift 2
    call "$@"
    [ "$code" -eq "$want" ] || complain "akin $*: exit code $code, not $want"
    grep -qF -- "$text" "$work/err" || complain "akin $*: no \"$text\""
    [ ! -s "$work/out" ] || complain "akin $*: text on stdout"
    [ "$(wc -l <"$work/err")" -le 24 ] || complain "akin $*: a long message"
}

# full ARG...: with stdout on a full disk the command must fail and say so.
full() {
    code=0
    echo "$*" >>"$work/ran"
    : >"$work/out"
    timeout -k 5 100 "$akin" "$@" </dev/null >/dev/full 2>"$work/err" ||
        code=$?
    [ "$code" -eq 1 ] || complain "akin $* >/dev/full: exit code $code, not 1"
    grep -q '^akin: .*No space left' "$work/err" ||
        complain "akin $* >/dev/full: no message"
}

# value KEY...: a value of the JSON object that the last command printed.
value() {
    "$json_value" "$work/out" "$@" || complain "no value $*"
}

# same WHAT A B: two texts must be equal.
same() {
    [ "$2" = "$3" ] || complain "$1: \"$2\" is not \"$3\""
}

# holds TEXT: the last command printed this on stdout.
holds() {
    grep -qF -- "$1" "$work/out" || complain "no \"$1\" on stdout"
}

# finish: the closing line and the exit code of the script.
finish() {
    echo "$(wc -l <"$work/ran") commands, $(wc -l <"$work/failed") failures"
    [ ! -s "$work/failed" ]
    exit
}
