#!/usr/bin/env bash
# akin trace make: equal options give equal bytes, the statistics that it is
# made for, and what it refuses.
#
# usage: test_trace_make.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# within WHAT X LOW HIGH: a number must lie between two others.
within() {
    awk -v x="$2" -v a="$3" -v b="$4" \
        'BEGIN { exit !(x != "" && x >= a && x <= b) }' ||
        complain "$1: $2 is not from $3 to $4"
}

# make NAME ARG...: make a trace of the first layers of a model.
make() {
    local name=$1
    shift
    accept trace make -o "$work/$name.json" "$@"
}

accept trace --help
holds 'make'
accept trace make --help
holds '--like'

# ---- the statistics ----

make task --like qwen3-30b-a3b -L 4 --requests 240 --output-tokens 24 \
    --output-spread 0 --seed 3 --json
same 'requests' "$(value requests)" 240
same 'shape' "$(value layers) $(value experts) $(value top_k)" '4 128 8'
same 'tokens' "$(value tokens)" $(($(value prompt_tokens) + 240 * 24))
tokens=$(value tokens)
same 'bytes' "$(stat -c %s "$work/task.u8")" $((tokens * 4 * 8))
accept trace info "$work/task.json" --json
same 'tokens' "$(value tokens)" "$tokens"
same 'prompt' "$(value prompt)" recorded
same 'first domain' "$(value domains 0 name)" legal
# 240 x 0.3085 = 74, and four standard errors.
within 'largest domain' "$(value domains 0 requests)" 46 103
# Outputs are short here, which takes something from the correlation.
within 'correlation' "$(value prefill_decode_correlation mean)" 0.70 0.92
within 'least layer' "$(value prefill_decode_correlation layer_min)" 0.6 \
    "$(value prefill_decode_correlation mean)"
within 'most layer' "$(value prefill_decode_correlation layer_max)" \
    "$(value prefill_decode_correlation mean)" 0.95
# 17 to 21 % fewer; a point and a half of error is granted to four layers.
same 'batch' "$(value domain_locality 1 batch)" 16
within 'fewer experts' "$(awk -v a="$(value domain_locality 1 same_domain)" \
    -v b="$(value domain_locality 1 any_domain)" \
    'BEGIN { print 100 * (1 - a / b) }')" 15.5 22.5
accept trace info "$work/task.json"
holds 'legal'
holds 'over layers'

make language --like gpt-oss-120b -L 4 --requests 240 --workload language \
    --output-tokens 24 --rate 10
holds '240 requests'
accept trace info "$work/language.json" --json
same 'shape' "$(value layers) $(value experts) $(value top_k)" '4 128 4'
same 'first domain' "$(value domains 0 name)" english
within 'fewer experts' "$(awk -v a="$(value domain_locality 1 same_domain)" \
    -v b="$(value domain_locality 1 any_domain)" \
    'BEGIN { print 100 * (1 - a / b) }')" 2 11.5
# 240 arrivals at 10 per second: 24 s, and four standard errors.
within 'last arrival' "$("$json_value" "$work/language.json" records 239 \
    arrival_s)" 17.8 30.2

# ---- equal options, equal bytes ----

small=(-L 2 -E 300 -k 3 --requests 20 --rate 5)
make one "${small[@]}" --seed 7
make two "${small[@]}" --seed 7
make other "${small[@]}" --seed 8
# Ids above 255 take two bytes.
cmp -s "$work/one.u16" "$work/two.u16" || complain 'other rows'
cmp -s <(sed s/one.u16/two.u16/ "$work/one.json") "$work/two.json" ||
    complain 'another index'
cmp -s "$work/one.u16" "$work/other.u16" && complain 'equal rows of two seeds'

# A trace that was cut off by a full disk goes on, but not with other options.
refused=0
(
    ulimit -f 8
    exec "$akin" trace make -o "$work/cut.json" "${small[@]}" --seed 7
) >"$work/out" 2>"$work/err" || refused=$?
same 'cut off' "$refused" 1
refuse 1 '--resume' trace make -o "$work/cut.json" "${small[@]}" --seed 7
refuse 1 'model' trace make -o "$work/cut.json" "${small[@]}" --seed 8 \
    --resume
accept trace make -o "$work/cut.json" "${small[@]}" --seed 7 --resume
cmp -s <(sed s/cut.u16/one.u16/ "$work/cut.json") "$work/one.json" ||
    complain 'another index after --resume'
cmp -s "$work/cut.u16" "$work/one.u16" || complain 'other rows after --resume'

# ---- what is refused ----

x=("trace" "make" "-o" "$work/x.json")
refuse 2 'no shape: name a model with --like' "${x[@]}"
refuse 2 'no shape' "${x[@]}" -L 2 -E 8
refuse 2 'no output' trace make --like gpt-oss-20b
refuse 2 'did you mean "gpt-oss-20b"?' "${x[@]}" --like gpt-oss-20
refuse 2 'known are task, language' "${x[@]}" --like gpt-oss-20b \
    --workload poems
refuse 2 '-k 9: there are 8 experts' "${x[@]}" -L 1 -E 8 -k 9
refuse 2 '-E 5000' "${x[@]}" -L 1 -E 5000 -k 2
refuse 2 '--requests 0' "${x[@]}" --like gpt-oss-20b --requests 0
refuse 2 '--rate nan' "${x[@]}" --like gpt-oss-20b --rate nan
refuse 2 '--prompt-tokens 1e9' "${x[@]}" --like gpt-oss-20b \
    --prompt-tokens 1e9
refuse 2 '--output-spread -1' "${x[@]}" --like gpt-oss-20b --output-spread -1
refuse 2 'nothing to name' "${x[@]}" --like gpt-oss-20b more
refuse 1 "$work/one.json: exists already" trace make -o "$work/one.json" \
    "${small[@]}"
[ ! -e "$work/x.u8" ] || complain 'a refused trace left data'

finish
