#!/usr/bin/env bash
# A job with the modelled engine answers the same whatever its shape and
# whatever happens to it, takes the experts of its trace, and says what it needs.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

trace=$scratch/trace
make=(--like qwen3-30b-a3b --prompt-tokens 24 --output-tokens 16)
"$akin" trace make "${make[@]}" --requests 20 --seed 5 -o "$trace.json" \
    >/dev/null || fail 'trace make'
input=$scratch/prompts
"$akin" trace prompts -m "$model/" "$trace.json" >"$input" ||
    fail 'trace prompts'
expect "prompts: lines" 20 "$(wc -l <"$input")"
expect_same "prompts: in the order of the trace" <("$check" ids "$input") \
    <(grep -o '"id": "[^"]*"' "$trace.json" | cut -d'"' -f4)

job=$scratch/modelled.conf
cat >"$job" <<JOB
model: { path = "$model"; };
engine: { kind = "modelled"; };
modelled: { trace = "$trace.json"; slowdown = 0.1; };
roles: { prefill = 1; decode = 1; };
kv: { slab = "8MiB"; };
JOB

run base
expect "base: exit code" 0 "$code"
expect "base: answers, errors" "20 0" \
    "$("$check" lines "$scratch/base.jsonl" 16 | cut -d' ' -f1,2)"
rows=$(grep -o '"n_tokens": [0-9]*' "$trace.json" |
    awk '{ n += $2 } END { print n }')
expect "base: tokens, as in the trace" "$rows" \
    "$(($(value base total_input_tokens) + $(value base total_output_tokens)))"
expect "base: engine" modelled "$(value base engine)"

# Other workers, other chunks, other blocks.
run workers --set roles.prefill=2 --set roles.decode=3 \
    --set routing.decode=rr --set prefill.chunk_tokens=8 \
    --set kv.block_tokens=8 --set modelled.machine=h200
expect "workers: exit code" 0 "$code"
expect_same "workers" "$scratch/base.jsonl" "$scratch/workers.jsonl"

# Groups of two ranks: the rank with most experts has between a half and all.
run group --set roles.ep=2 --set ep.replicas=4
expect "group: exit code" 0 "$code"
expect_same "group" "$scratch/base.jsonl" "$scratch/group.jsonl"

# A decode rank dies under its requests.
start killed --set roles.decode=2 --set modelled.slowdown=10
wait_until 20 has_lines "$scratch/killed.jsonl" 1 || fail 'killed: no start'
kill -KILL "$(rank_process 2)"
ended
expect "killed: exit code" 0 "$code"
expect "killed: deaths" 1 "$(value killed recovery.deaths)"
expect_same_lines "killed" "$scratch/base.jsonl" "$scratch/killed.jsonl"

# The experts are those of the trace, behind the tokens that name its records.
"$akin" calibrate -c "$job" -i "$input" -o "$scratch/back.json" --tokens 12 \
    >/dev/null 2>&1 || fail 'calibrate'
row=$((48 * 8))
# offset_of FILE ID, rows_of FILE ID
record() {
    grep -o "\"id\": \"$2\"[^}]*\"$3\": [0-9]*" "$1" | grep -o '[0-9]*$'
}
n=0
for id in $("$check" ids "$input"); do
    rows=$(record "$scratch/back.json" "$id" n_tokens)
    whole=$(record "$trace.json" "$id" n_tokens)
    [ "$rows" -le "$whole" ] || rows=$whole
    cmp -n $(((rows - 7) * row)) \
        -i $(($(record "$trace.json" "$id" offset) + 7 * row)):$(($(record \
            "$scratch/back.json" "$id" offset) + 7 * row)) \
        "$trace.u8" "$scratch/back.u8" || fail "experts of $id"
    n=$((n + 1))
done
expect "experts: records" 20 "$n"

# Each prompt has an id of its own, whatever ids the records have.
sed 's/"id": "00000001"/"id": "00000000#2"/' "$trace.json" >"$scratch/ids.json"
cp "$trace.u8" "$scratch/ids.u8"
sed -i 's/trace\.u8/ids.u8/' "$scratch/ids.json"
"$akin" trace prompts -m "$model" -n 60 "$scratch/ids.json" >"$scratch/ids.in"
expect "ids: different ones" 60 \
    "$("$check" ids "$scratch/ids.in" | sort -u | wc -l)"

# What it needs.
cat >"$scratch/bench.json" <<JSON
[{"bench": "step", "bytes": 1000, "seconds": 1.0, "reference_seconds": 1.0}]
JSON
refused() {
    run "$1" "${@:3}"
    expect "$1: exit code" 2 "$code"
    expect_text "$1" "$scratch/$1.err" "$2"
}
refused no-trace 'as akin trace make --like qwen3-30b-a3b writes' \
    --set 'modelled.trace='
refused other-model "$trace.json has 48 layers and 8 of 128 experts" \
    --set modelled.model=qwen3-235b-a22b
refused no-file 'modelled.trace: ' --set modelled.trace=/nowhere.json
refused no-model 'did you mean "qwen3-30b-a3b"' \
    --set modelled.model=qwen3-30b
refused no-kv '128 is the most for qwen3-30b-a3b' --set modelled.kv_scale=129
refused slow 'a single token of qwen3-30b-a3b would take' \
    --set modelled.machine="$scratch/bench.json"
refused no-machine 'neither mi300x nor h200' --set modelled.machine=mi300
finish
