#!/usr/bin/env bash
# A calibration records what the engine alone chooses, whatever job runs it,
# stopped and resumed or not, with all its workers or not.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

alone=$(dirname "$check")/e2e_trace_alone
tokens=24

# calibrate NAME [ARGUMENT...]: a trace $scratch/NAME.json; sets code.
calibrate() {
    local name=$1
    shift
    "$akin" calibrate -c "$job" -i "$input" -o "$scratch/$name.json" \
        --tokens "$tokens" "$@" >"$scratch/$name.out" 2>"$scratch/$name.err"
    code=$?
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
}

# expect_alone NAME INPUT: the trace is of these lines, as the engine says.
expect_alone() {
    "$alone" "$model" "$scratch/$1.json" "$2" "$tokens" ||
        fail "$1: not what the engine alone gives"
    [ ! -e "$scratch/$1.json.part" ] || fail "$1: the journal is left"
}

# index NAME: the index without what depends on the order of completion.
index() {
    sed -e 's/"offset": [0-9]*, //' -e 's/"data": "[^"]*"/"data"/' \
        "$scratch/$1.json"
}

expect_same_index() {
    cmp <(index "$2") <(index "$3") || fail "$1: $2 and $3 differ"
}

calibrate base
expect "base: exit code" 0 "$code"
expect_alone base "$prompts"
rows=$(grep -o '"n_tokens": [0-9]*' "$scratch/base.json" |
    awk '{ n += $2 } END { print n }')
expect_text "base" "$scratch/base.out" \
    "base.json: 26 requests, $rows rows, $(wc -c <"$scratch/base.u8") bytes, "
expect "base: lines on stdout" 1 "$(wc -l <"$scratch/base.out")"

# Another job, another order, and settings that must not count.
tac "$prompts" >"$scratch/reverse.in"
input=$scratch/reverse.in
calibrate other --json --set roles.prefill=2 --set roles.decode=3 \
    --set prefill.chunk_tokens=24 --set kv.block_tokens=8 \
    --set decode.max_batch=3 --set kv.prefix_cache=true \
    --set routing.fit="$scratch/none.json"
expect "other: exit code" 0 "$code"
expect_alone other "$prompts"
expect_same_index "other" base other
expect "other: rows" "$rows" "$("$check" get "$scratch/other.out" rows)"

# A signal, and the rest.
input=$scratch/pipe
mkfifo "$input"
exec 9<>"$input"
head -n 14 "$prompts" >&9
"$akin" calibrate -c "$job" -i "$input" -o "$scratch/stopped.json" \
    --tokens "$tokens" --set decode.max_batch=1 >"$scratch/stopped.out" \
    2>"$scratch/stopped.err" 9>&- &
launcher=$!
# The first line of a journal is the shape.
wait_until 60 has_lines "$scratch/stopped.json.part" 4 ||
    fail "stopped: no records come"
kill -INT "$launcher"
ended
exec 9>&-
expect "stopped: exit code" 4 "$code"
expect "stopped: words on stdout" "" "$(cat "$scratch/stopped.out")"
expect_text "stopped" "$scratch/stopped.err" "go on with --resume"
expect_none_left "stopped"
[ ! -e "$scratch/stopped.json" ] || fail "stopped: there is an index"
cp "$scratch/stopped.u8" "$scratch/part.u8"
cp "$scratch/stopped.json.part" "$scratch/part"
input=$prompts
calibrate stopped
expect "not resumed: exit code" 1 "$code"
expect_text "not resumed" "$scratch/stopped.err" "--resume"
expect_same "not resumed" "$scratch/part" "$scratch/stopped.json.part"
calibrate stopped --resume
expect "resumed: exit code" 0 "$code"
expect_alone stopped "$prompts"
expect_same_index "resumed" base stopped
# Nothing was done twice: what was there is there still, and only once.
cmp -n "$(wc -c <"$scratch/part.u8")" "$scratch/part.u8" \
    "$scratch/stopped.u8" || fail "resumed: the first records are others"
expect "resumed: bytes" "$(wc -c <"$scratch/base.u8")" \
    "$(wc -c <"$scratch/stopped.u8")"

# A worker is lost with requests in its hands: it gets some while it does not
# run. Decode, then prefill.
export UCX_KEEPALIVE_INTERVAL=100ms
for rank in 4 1; do
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe"
    exec 9<>"$scratch/pipe"
    head -n 14 "$prompts" >&9
    "$akin" calibrate -c "$job" -i "$scratch/pipe" \
        -o "$scratch/lost-$rank.json" --tokens "$tokens" \
        --set roles.prefill=2 --set decode.max_batch=2 \
        >"$scratch/lost.out" 2>"$scratch/lost.err" 9>&- &
    launcher=$!
    wait_until 60 has_lines "$scratch/lost-$rank.json.part" 3 ||
        fail "lost: no records come"
    victim=$(rank_process "$rank")
    kill -STOP "$victim"
    tail -n +15 "$prompts" >&9
    sleep 1
    kill -KILL "$victim"
    exec 9>&-
    ended
    expect "lost $rank: exit code" 0 "$code"
    expect_text "lost $rank" "$scratch/lost.err" "rank $rank is lost"
    expect_text "lost $rank" "$scratch/lost.err" "starts again"
    expect_quiet "lost $rank" "$scratch/lost.err"
    expect_none_left "lost $rank"
    expect_alone "lost-$rank" "$prompts"
    expect_same_index "lost $rank" base "lost-$rank"
done

# A prompt that leaves less room gets what there is; labels are kept.
ids=$(seq -s, 1 1000)
line='{"custom_id":"%s","method":"POST","url":"/v1/completions","body":'
{
    # shellcheck disable=SC2059
    printf "$line"'{"prompt":[%s],"max_tokens":1}}\n' long "$ids"
    # shellcheck disable=SC2059
    printf "$line"'{"prompt":"Hello","metadata":{"domain":"greeting"}}}\n' hello
    # shellcheck disable=SC2059
    printf "$line"'{"prompt":"Hello","temperature":1.5,"seed":3}}\n' wild
} >"$scratch/room.in"
input=$scratch/room.in tokens=128
calibrate room
expect "room: exit code" 0 "$code"
expect_alone room "$scratch/room.in"
expect "room: label" greeting \
    "$("$check" get "$scratch/room.json" records.0.domain)"
expect "room: rows" 1023 \
    "$("$check" get "$scratch/room.json" records.1.n_tokens)"

# Requests that fail are told and left out; without any other, no trace.
{
    cat "$scratch/room.in"
    echo 'not json'
    head -n 1 "$scratch/room.in"
} >"$scratch/bad.in"
input=$scratch/bad.in
calibrate bad
expect "bad: exit code" 3 "$code"
expect_alone bad "$scratch/room.in"
expect_text "bad" "$scratch/bad.err" "2 requests failed"
expect_text "bad" "$scratch/bad.err" "line 4: not valid JSON"
expect_text "bad" "$scratch/bad.err" "line 5: custom_id \"long\""
echo 'not json' >"$scratch/none.in"
input=$scratch/none.in
calibrate none
expect "none: exit code" 1 "$code"
expect_text "none" "$scratch/none.err" "no request was recorded"
[ ! -e "$scratch/none.json" ] || fail "none: there is a trace"

# A trace is not overwritten.
input=$scratch/room.in
calibrate room
expect "again: exit code" 1 "$code"
expect_text "again" "$scratch/room.err" "room.json"

# refused TEXT ARGUMENT...
refused() {
    local text=$1
    shift
    "$akin" calibrate -c "$job" -i "$prompts" "$@" >"$scratch/refused.out" \
        2>"$scratch/refused.err"
    expect "$text: exit code" 2 $?
    expect_text "$text" "$scratch/refused.err" "$text"
}
refused "no trace"
refused "two files" -o -
refused "--tokens: a whole number" -o "$scratch/x.json" --tokens 0
refused "--tokens: a whole number" -o "$scratch/x.json" --tokens 1e3
finish
