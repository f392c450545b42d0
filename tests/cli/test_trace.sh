#!/usr/bin/env bash
# akin trace: import and info of hand-made route sets, and what they refuse.
#
# usage: test_trace.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# rows FILE N EXPERT...: N rows of these experts, which are all layers of a row.
rows() {
    local file=$1 n=$2 row='' i expert
    shift 2
    for expert in "$@"; do
        row+="\\x0$expert"
    done
    for ((i = 0; i < n; i++)); do
        # shellcheck disable=SC2059 # the escapes are the point
        printf "$row"
    done >>"$work/$file"
}

# Two layers, eight experts, top 2; ids are numbers, and prompt_tokens says
# nothing about the rows. Requests of law use the experts 0 and 1, of code 4 to
# 7; the request without a label 2 and 3. 10 x 17 + 5 x 17 + 1 x 1 rows.
big=$work/big.json
{
    echo '{"model": "m", "layers": 2, "experts": 8, "top_k": 2, "records": ['
    for i in $(seq 0 16); do
        echo "{\"id\": $i, \"category\": \"law\", \"prompt_tokens\": 90,"
        echo " \"n_tokens\": 10, \"offset\": $((i * 40))},"
        rows big.u8 10 0 1 1 0
    done
    for i in $(seq 17 33); do
        echo "{\"id\": $i, \"category\": \"code\", \"prompt_tokens\": 90,"
        echo " \"n_tokens\": 5, \"offset\": $((680 + (i - 17) * 20))},"
        rows big.u8 5 4 5 6 7
    done
    echo '{"id": 34, "n_tokens": 1, "offset": 1020}]}'
    rows big.u8 1 2 3 2 3
} >"$big"

# The same shape under other names, one request.
small=$work/small.json
echo '{"model": "m", "moe_layers": 2, "experts": 8, "top_k": 2, "records":
[{"id": 0, "domain": "law", "n_tokens": 4, "offset": 0}]}' >"$small"
rows small.u8 3 1 2 3 4
rows small.u8 1 1 2 5 6

# near WHAT A B: two numbers must be equal up to rounding.
near() {
    awk -v a="$2" -v b="$3" 'BEGIN { d = a - b
        exit !(a != "" && d < 1e-6 && d > -1e-6) }' ||
        complain "$1: $2 is not $3"
}

accept trace --help
holds 'import'
accept trace import --help
holds '--prompt-tokens'
accept trace info --help
holds '--seed'
refuse 2 'Usage: akin trace' trace
refuse 2 'unknown verb "impor", did you mean "import"?' trace impor
refuse 2 'unknown verb "xyzzy"' trace xyzzy

# ---- info of a published set ----

accept trace info "$big" --json --prompt-tokens 2
same 'model' "$(value model)" m
same 'shape' "$(value layers) $(value experts) $(value top_k)" '2 8 2'
same 'requests' "$(value requests)" 35
same 'tokens' "$(value tokens)" 256
same 'bytes' "$(value bytes)" 1024
same 'prompt' "$(value prompt)" unknown
same 'rows' "$(value prompt_tokens) $(value decode_tokens) \
$(value unknown_tokens)" '0 0 256'
same 'lengths' "$(value length_tokens)" '{"min":1,"median":5,"p99":10,"max":10}'
same 'domains' "$(value domains)" '[{"name":"code","requests":17},'\
'{"name":"law","requests":17},{"name":"","requests":1}]'
same 'batch' "$(value distinct_experts_per_layer 0 batch)" 1
near 'one token' "$(value distinct_experts_per_layer 0 mean)" 2
same 'too few' "$(value distinct_experts_per_layer 3 mean)" null
# A batch of one domain has one pair of experts, 16 of both have two pairs.
same 'batch' "$(value domain_locality 1 batch)" 16
near 'one domain' "$(value domain_locality 1 same_domain)" 2
near 'any domain' "$(value domain_locality 1 any_domain)" 4
# The first rows are as those after them; one request has no rows after two.
near 'correlation' "$(value prefill_decode_correlation mean)" 1
same 'requests' "$(value prefill_decode_correlation requests)" 34
same 'stand-ins' "$(value prefill_decode_correlation stand_in_requests)" 34
accept trace info "$big" --json --seed 5
near 'seed' "$(value domain_locality 1 any_domain)" 4
accept trace info "$big" --prompt-tokens 2
holds '2 x 8, top-2'
holds 'in 34 of them the first 2 rows stand in for the prompt, which flatters'
holds '(no label)'

# ---- import ----

accept trace import "$big" -o "$work/one.json"
holds "one.json: 35 requests, 256 tokens"
accept trace info "$work/one.json" --json
same 'model' "$(value model)" m
same 'tokens' "$(value tokens)" 256
same 'format' "$("$json_value" "$work/one.json" format)" akin-trace-1
# Nothing is written over.
refuse 1 "$work/one.json: exists already" trace import "$big" \
    -o "$work/one.json"

accept trace import "$big" "$small" -o "$work/two.json" --prompt-tokens 3 \
    --min-tokens 4 --model other --json
same 'requests' "$(value requests)" 35
same 'left out' "$(value left_out)" 1
same 'tokens' "$(value tokens)" 259
same 'prompt' "$(value prompt_tokens)" 105
same 'first id' "$("$json_value" "$work/two.json" records 0 id)" big/0
same 'last id' "$("$json_value" "$work/two.json" records 34 id)" small/0
accept trace info "$work/two.json" --json
same 'model' "$(value model)" other
same 'prompt' "$(value prompt)" stand-in
same 'decode' "$(value decode_tokens)" 154
same 'stand-ins' "$(value prefill_decode_correlation stand_in_requests)" 35
# In the last request layer 1 has 3 and 4, then 5 and 6: of 16 cells 4 are in
# use and 2 in common; (2/16 - 1/16) / (1/4 x 3/4) = 1/3.
near 'correlation' "$(value prefill_decode_correlation mean)" \
    "$(awk 'BEGIN { printf "%.9f", (34 + 1 / 3) / 35 }')"
accept trace info "$work/two.json"
holds '105 (stand-in)'
holds 'rows of decode stand in for the prompt, which flatters it'
# Stand-ins stay stand-ins, and the ids of one source stay as they are.
accept trace import "$work/two.json" -o "$work/three.json"
# plain FILE: an index without what depends on the order of the rows.
plain() {
    sed 's/"offset": [0-9]*//; s/[a-z]*\.u8//' "$1"
}
cmp -s <(plain "$work/two.json") <(plain "$work/three.json") ||
    complain 'another index'
accept trace info "$work/two.json" --json
two=$(sed 's/"trace": "[^"]*"//' "$work/out")
accept trace info "$work/three.json" --json
same 'info' "$(sed 's/"trace": "[^"]*"//' "$work/out")" "$two"
refuse 2 'knows its prompt of 3 rows' trace import "$work/two.json" \
    -o "$work/four.json" --prompt-tokens 2
# Sources of one name are told apart by their numbers.
mkdir "$work/sub"
cp "$big" "$work/big.u8" "$work/sub/"
accept trace import "$work/sub/big.json" "$big" -o "$work/four.json"
same 'id' "$("$json_value" "$work/four.json" records 0 id)" 1/0

# An import that was cut off goes on: a disk that is full after 800 bytes.
refused=0
(
    ulimit -f 1
    exec "$akin" trace import "$big" -o "$work/cut.json"
) 2>"$work/err" || refused=$?
same 'cut off' "$refused" 1
grep -q 'cut.json.part: cannot write: File too large' "$work/err" ||
    complain 'cut off'
refuse 1 "--resume" trace import "$big" -o "$work/cut.json"
accept trace import "$big" -o "$work/cut.json" --resume
cmp -s <(sed s/cut.u8/one.u8/ "$work/cut.json") "$work/one.json" ||
    complain 'another index after --resume'
cmp -s "$work/cut.u8" "$work/one.u8" || complain 'other rows after --resume'
[ ! -e "$work/cut.json.part" ] || complain 'a journal is left'

# ---- what is refused ----

refuse 2 'no trace' trace info
refuse 2 'one trace at a time' trace info "$big" "$small"
refuse 2 '--seed x: a whole number' trace info "$big" --seed x
refuse 2 '--seed -1' trace info "$big" --seed -1
refuse 1 "$work/none.json: cannot open" trace info "$work/none.json"
refuse 1 "$work: cannot read" trace info "$work"
refuse 1 '/dev/zero: cannot read' trace info /dev/zero
refuse 2 'no source' trace import -o "$work/x.json"
refuse 2 'no output' trace import "$big"
refuse 2 '--prompt-tokens 0' trace import "$big" -o "$work/x.json" \
    --prompt-tokens 0
refuse 2 '--min-tokens 1.5' trace import "$big" -o "$work/x.json" \
    --min-tokens 1.5
refuse 2 'all 35 have fewer than 11 rows' trace import "$big" \
    -o "$work/x.json" --prompt-tokens 10
refuse 1 "$work/none/x.json.part: cannot create" trace import "$big" \
    -o "$work/none/x.json"
sed 's/"experts": 8/"experts": 9/' "$small" >"$work/nine.json"
cp "$work/small.u8" "$work/nine.u8"
refuse 2 'nine.json: 2 layers, 9 experts, top_k 2, but' trace import "$big" \
    "$work/nine.json" -o "$work/x.json"
sed 's/"m"/"n"/' "$small" >"$work/nine.json"
refuse 2 'name one with --model' trace import "$big" "$work/nine.json" \
    -o "$work/x.json"
echo '{"0": {"0": {"activation_tokens": 1622}}}' >"$work/sums.json"
refuse 1 'sums per expert over all tokens' trace import "$work/sums.json" \
    -o "$work/x.json"
head -c 1023 "$work/big.u8" >"$work/sub/big.u8"
refuse 1 'sub/big.u8: record "34": 4 bytes of rows from byte 1020 on' \
    trace info "$work/sub/big.json"
[ ! -e "$work/x.json.part" ] || complain 'a refused import left a journal'
[ ! -e "$work/x.u8" ] || complain 'a refused import left data'

full trace info "$big"
full trace info "$big" --json
full trace --help
finish
