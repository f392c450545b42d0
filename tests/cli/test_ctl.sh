#!/usr/bin/env bash
# akin ctl without a job: what it takes, and whom it does not believe.
#
# usage: test_ctl.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

accept ctl --help
holds 'drain WORKER'
holds '--move'
refuse 2 'no command' ctl
refuse 2 'frob: no such command: there are status, drain' ctl frob
refuse 2 'no worker: name one' ctl drain
refuse 2 'no worker: name one' ctl resume --json
refuse 2 'one worker at a time' ctl drain decode 1 2
refuse 2 'one worker at a time' ctl drain 'decode 1' 2
refuse 2 '--move is for drain' ctl resume decode1 --move
refuse 2 'now: no such argument' ctl status now
refuse 2 'frobnicate' ctl status --frobnicate

refuse 1 "$work/none: cannot connect: No such file" ctl -S "$work/none" status
: >"$work/file"
refuse 1 "$work/file: nobody listens there" ctl -S "$work/file" status
refuse 2 'the path of a socket is empty' ctl -S '' status
long=$work/$(printf 'x%.0s' {1..120})
refuse 1 'that of a UNIX socket at most 107' ctl -S "$long" status

# A folder that somebody else may have made.
mkdir -m 700 "$work/runtime" "$work/elsewhere"
export XDG_RUNTIME_DIR=$work/runtime
ln -s "$work/elsewhere" "$work/runtime/akin"
refuse 1 "$work/runtime/akin is a link" ctl status
rm "$work/runtime/akin"
mkdir -m 755 "$work/runtime/akin"
refuse 1 "$work/runtime/akin is open to other users" ctl metrics

full ctl --help
finish
