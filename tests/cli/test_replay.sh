#!/usr/bin/env bash
# akin replay: the table, the JSON and the errors, on a hand-made route set.
#
# usage: test_replay.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# Two layers, 16 experts, top 2. 60 requests of 12 rows: those of law take the
# experts 0 to 7, in a walk that depends on request and row, code 8 to 15.
trace=$work/t.json
{
    echo '{"model": "m", "layers": 2, "experts": 16, "top_k": 2, "records": ['
    for i in $(seq 0 59); do
        [ "$i" -eq 0 ] || echo ','
        domain=law
        first=0
        if [ $((i % 2)) -eq 1 ]; then
            domain=code
            first=8
        fi
        echo "{\"id\": $i, \"category\": \"$domain\", \"n_tokens\": 12,"
        echo " \"offset\": $((i * 48))}"
        for row in $(seq 0 11); do
            a=$(((i * 3 + row) % 8)) b=$(((i * 5 + row * row + 1) % 7))
            printf '\\x%02x' $((first + a)) $((first + (a + 1 + b) % 8)) \
                $((first + (a + 2) % 8)) $((first + (a + 5) % 8))
        done >>"$work/t.escapes"
    done
    echo ']}'
} >"$trace"
# shellcheck disable=SC2059 # the escapes are the point
printf "$(cat "$work/t.escapes")" >"$work/t.u8"
# The same without domains.
sed 's/"category": "[a-z]*",//' "$trace" >"$work/plain.json"
cp "$work/t.u8" "$work/plain.u8"

pool=(--workers 2 --in-flight 6 --prompt-tokens 4)

# is EXPRESSION A B: an awk condition on the numbers a and b.
is() {
    awk -v a="$2" -v b="$3" "BEGIN { exit !(a != \"\" && b != \"\" && ($1)) }" ||
        complain "not $1 with a=$2 b=$3"
}

accept replay --help
holds '--in-flight'

# ---- the table ----

accept replay "$trace" "${pool[@]}"
holds 'm, 2 layers x 16 experts, top-2'
holds '60 requests, per seed 24 to fit and the other 36 to measure, 144 measured'
holds 'closed loop, 2 workers x 6 in flight; step = 2 + 14 x'
holds '5 seeds from 1; count_idf'
holds 'the first 4 rows of decode stand in for prompts'
for policy in random rr jsq p2c domain eldr-static:0.1 eldr:0.1 union \
    union-band:0.1 union-pull:0.16; do
    grep -q "^$policy  *[0-9]" "$work/out" || complain "no row of $policy"
done
accept replay "$trace" "${pool[@]}" --policy eldr-static:0.3,union
holds 'no changes'
grep -q ' vs ' "$work/out" && complain 'changes against nothing'
accept replay "$trace" "${pool[@]}" --policy rr,union --seeds 1
holds 'P99 vs rr'
grep -q '+-' "$work/out" && complain 'an interval of one seed'
accept replay "$work/plain.json" "${pool[@]}" --policy all --seeds 1
grep -q '^domain' "$work/out" && complain 'domains out of nothing'
# Settings: one row each, and those in the list beside them.
accept replay "$trace" "${pool[@]}" --seeds 1 --tau 0,0.25 --pull 1,2 \
    --policy jsq,eldr-static,union-pull,union-band:0.5
same 'rows' "$(grep -c '^[a-z-]*:[0-9]' "$work/out")" 5
# What knows no prompts does not need to be told that rows stand in for them.
accept replay "$trace" "${pool[@]}" --policy jsq,rr --seeds 1
grep -q caveat "$work/out" && complain 'a caveat about prompts'

# ---- JSON ----

accept replay "$trace" "${pool[@]}" --json --policy jsq,domain,eldr-static \
    --seeds 3 --seed 9 --split 20 --requests 200 --step 1,20,0.1
same model "$(value model)" m
same requests "$(value requests)" 60
same fit "$(value requests_to_fit)" 20
same measure "$(value requests_to_measure)" 40
same measured "$(value measured)" 200
same warmup "$(value warmup)" 36
same step "$(value step_ms all_experts)" 20.0
same seed "$(value seed)" 9
same stands "$(value prompt_stands_in)" true
same best "$(value best_balancer)" jsq
same name "$(value policies 2 name)" eldr-static:0.1
is 'a > b - 1e-9 && a < b + 1e-9' "$(value policies 2 tau)" 0.1
same itself "$(value policies 0 change_percent tpot_p50_ms mean)" 0.0
# Two domains that share no expert on two workers: who keeps them apart pays
# for their own experts alone, at most 8 of the 16.
mixed=$(value policies 0 distinct_experts_per_layer mean)
apart=$(value policies 1 distinct_experts_per_layer mean)
is 'a > 8.5 && b < 8' "$mixed" "$apart"
is 'a > 1.2 * b' "$mixed" \
    "$(value policies 2 distinct_experts_per_layer mean)"
same median "$(value policies 1 tpot_percentiles_ms 10 1)" \
    "$(value policies 1 tpot_p50_ms mean)"
# A worker that is told by the experts of its tokens is 1 bit; two workers hold
# the requests in flight together.
same bits "$(value policies 1 experts difference_bits 0)" 1.0
is 'a < 0.2' "$(value policies 0 experts difference_bits 0)" 0
is 'a + b > 11.9 && a + b < 12.1' "$(value policies 0 load workers 0 9)" \
    "$(value policies 0 load workers 1 9)"
is 'a < -10 && b > 0' "$(value policies 2 change_percent tpot_p50_ms mean)" \
    "$(value policies 2 change_percent tpot_p50_ms half_width)"
# The change of a seed is that of its two values.
is 'a - 100 * b < 1e-4 && 100 * b - a < 1e-4' \
    "$(value policies 1 change_percent tpot_p99_ms seeds 2)" \
    "$(awk -v a="$(value policies 1 tpot_p99_ms seeds 2)" \
        -v b="$(value policies 0 tpot_p99_ms seeds 2)" \
        'BEGIN { printf "%.9f", a / b - 1 }')"
# The step in which all run costs no more than all experts and requests.
is 'a < 1 + 20 + 0.1 * b' "$(value policies 0 tpot_mean_ms mean)" 12
# The same call gives the same figures.
sed 's/"seconds": [0-9.e-]*,//' "$work/out" >"$work/first"
accept replay "$trace" "${pool[@]}" --json --policy jsq,domain,eldr-static \
    --seeds 3 --seed 9 --split 20 --requests 200 --step 1,20,0.1
sed 's/"seconds": [0-9.e-]*,//' "$work/out" | cmp -s - "$work/first" ||
    complain 'the same call gives other figures'

# ---- open loop ----

accept replay "$trace" --workers 2 --prompt-tokens 4 --rate 0.01 --json \
    --policy jsq --seeds 1
same loop "$(value loop)" open
same in-flight "$(value in_flight)" null
same wait "$(value policies 0 wait_ms mean)" 0.0
# A request alone activates 2 of 16 experts: 2 + 14 / 8 + 0.02 ms.
is 'a > b - 1e-6 && a < b + 1e-6' "$(value policies 0 tpot_p50_ms mean)" 3.77
accept replay "$trace" --workers 2 --prompt-tokens 4 --rate 50 --max-batch 2 \
    --policy jsq
holds 'open loop, 2 workers, 50 requests/s, at most 2 per worker'
grep -q 'wait$' "$work/out" || complain 'no wait'

# ---- a fit ----

accept fit "$trace" -o "$work/fit.json" -K 2 --variant count \
    --prompt-tokens 4 --seed 1
accept replay "$trace" "${pool[@]}" --fit "$work/fit.json" --seeds 2
holds 'the fit may have seen the requests that are measured'
holds '60 requests, 240 measured'
accept replay "$trace" "${pool[@]}" --fit "$work/fit.json" --seeds 2 --json
same variant "$(value variant)" count
same fit "$(value requests_to_fit)" 0
refuse 2 'fit.json: ' replay "$trace" --workers 3 --in-flight 4 \
    --prompt-tokens 4 --fit "$work/fit.json"
refuse 2 '--fit and --split' replay "$trace" "${pool[@]}" --split 9 \
    --fit "$work/fit.json"
refuse 2 '--fit and --variant' replay "$trace" "${pool[@]}" --variant count \
    --fit "$work/fit.json"
refuse 1 'none.json' replay "$trace" "${pool[@]}" --fit "$work/none.json"

# ---- what is refused ----

refuse 2 'no trace' replay
refuse 2 'one trace at a time' replay "$trace" "$trace"
refuse 1 'none.json: cannot open' replay "$work/none.json"
refuse 2 '--prompt-tokens' replay "$trace"
refuse 2 't.json: of 60 records none has 13 rows' replay "$trace" "${pool[@]}" \
    --min-tokens 13
refuse 2 'more than 128 different requests, as none may run beside its copy' \
    replay "$trace" --prompt-tokens 4
refuse 2 'of the 60 in the trace 24 fit and 36 are measured: lower --workers' \
    replay "$trace" --prompt-tokens 4
refuse 2 '--split 60: ' replay "$trace" "${pool[@]}" --split 60
refuse 2 '2 workers need 2 requests or more to fit, but 1 of the 60' \
    replay "$trace" "${pool[@]}" --split 1
accept replay "$trace" "${pool[@]}" --split 1 --policy jsq --seeds 1
refuse 2 'unknown policy "jsk", did you mean "jsq"?' replay "$trace" \
    "${pool[@]}" --policy rr,jsk
refuse 2 'unknown policy ""; there are all, random, rr' replay "$trace" \
    "${pool[@]}" --policy rr,
refuse 2 'jsq has no setting' replay "$trace" "${pool[@]}" --policy jsq:1
refuse 2 'the tau must be a number' replay "$trace" "${pool[@]}" \
    --policy eldr:-1
refuse 2 'the pull must be a number' replay "$trace" "${pool[@]}" \
    --policy union-pull:
refuse 2 'eldr:0.1 is to be replayed twice' replay "$trace" "${pool[@]}" \
    --policy all,eldr
refuse 2 'does not know the requests' replay "$work/plain.json" "${pool[@]}" \
    --policy domain
refuse 2 '--tau 0.1,: up to 8 numbers' replay "$trace" --tau 0.1,
refuse 2 '--tau nan' replay "$trace" --tau nan
refuse 2 '--rate and --in-flight' replay "$trace" --rate 5 --in-flight 4
refuse 2 '--rate 0: ' replay "$trace" --rate 0
refuse 2 '--rate 1e-9: ' replay "$trace" --rate 1e-9
refuse 2 '--step 1,2: three numbers' replay "$trace" --step 1,2
refuse 2 '--step 0,0,0: ' replay "$trace" --step 0,0,0
refuse 2 '--workers 0: ' replay "$trace" --workers 0
refuse 2 '--seeds 1001: ' replay "$trace" --seeds 1001
refuse 2 '--variant idf: count or count_idf' replay "$trace" --variant idf
refuse 2 '--max-batch 5 leaves no room for --in-flight 6' replay "$trace" \
    "${pool[@]}" --max-batch 5
refuse 2 'all 36 requests of the trace run at once' replay "$trace" \
    --prompt-tokens 4 --rate 1e6 --policy jsq
refuse 2 'requests wait; lower the rate' replay "$trace" --prompt-tokens 4 \
    --rate 1e6 --max-batch 2 --policy jsq

# ---- a signal ----

"$akin" replay "$trace" "${pool[@]}" --seeds 1000 --requests 100000 \
    >"$work/out" 2>"$work/err" &
pid=$!
# Bit 1 of the caught signals is SIGINT.
caught=0
for _ in $(seq 100); do
    caught=$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$pid/status")
    [ $((0x${caught:-0} & 2)) -eq 0 ] || break
    sleep 0.1
done
kill -INT "$pid"
code=0
wait "$pid" || code=$?
same 'stopped' "$code" 4
[ ! -s "$work/out" ] || complain 'half a table'
grep -q 'stopped by a signal' "$work/err" || complain 'a stop without a word'

full replay "$trace" "${pool[@]}" --seeds 1
full replay "$trace" "${pool[@]}" --seeds 1 --json
refuse 2 'there are linear, round-robin' replay "$trace" "${pool[@]}" --ep 2 \
    --placement zzzzzzzz
refuse 2 'did you mean "linear"' replay "$trace" "${pool[@]}" --ep 2 \
    --placement linaer

finish
