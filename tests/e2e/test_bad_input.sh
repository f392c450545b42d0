#!/usr/bin/env bash
# Bad lines cost an error line each and nothing else; bad files, jobs and
# places end the run with a message that names them.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Lines: what is wrong, the code that says so, its text.
good() {
    printf '{"custom_id":"%s","method":"POST","url":"/v1/completions",' "$1"
    printf '"body":{"prompt":"The call","max_tokens":4}}\n'
}
body() {
    printf '{"custom_id":"%s","method":"POST","url":"%s","body":%s}\n' "$@"
}
long=$(printf 'word %.0s' {1..1500})
bad=$scratch/bad.in
{
    good first
    echo 'not json at all'
    printf '{"custom_id":"utf8","method":"POST","url":"/v1/completions",'
    printf '"body":{"prompt":"\xff\xfe","max_tokens":4}}\n'
    echo '{"method":"POST","url":"/v1/completions","body":{"prompt":"x"}}'
    body url /v1/embeddings '{"prompt":"x"}'
    body type /v1/completions '{"prompt":{"a":1},"max_tokens":4}'
    body missing /v1/completions '{"max_tokens":4}'
    body zero /v1/completions '{"prompt":"x","max_tokens":0}'
    body context /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":4}"
    body range /v1/completions '{"prompt":"x","temperature":-1}'
    body model /v1/completions '{"prompt":"x","model":"another"}'
    echo
    good first
    echo '[1,2,3]'
    printf '{"custom_id":"huge","method":"POST","url":"/v1/completions",'
    printf '"body":{"prompt":"'
    head -c 10000000 /dev/zero | tr '\0' 'a'
    printf '"}}\n'
    good last
} >"$bad"
input=$bad run bad
expect "bad lines: exit code" 3 "$code"
expect "bad lines: answers, errors" "2 13" \
    "$("$check" lines "$scratch/bad.jsonl" 16 | cut -d' ' -f1,2)"
expect "bad lines: summary" 13 "$(value bad failed)"
# The output is in order, so line N is what comes of the N-th line that is not
# blank.
n=0
while read -r status text; do
    n=$((n + 1))
    line=$(sed -n "${n}p" "$scratch/bad.jsonl")
    [[ $line == *"\"status_code\":$status,"* && $line == *"$text"* ]] ||
        fail "bad line $n: no $status and '$text' in ${line:0:300}"
done <<'LINES'
200 "custom_id":"first"
400 line 2: not valid JSON
400 line 3
400 custom_id
400 /v1/embeddings
400 prompt must be
400 prompt is missing
400 max_tokens
400 context
400 temperature
404 another
400 duplicate_custom_id
400 line 14
400 line 15
200 "custom_id":"last"
LINES
# An error line says nothing about the others: they are what they are alone.
{ good first && good last; } >"$scratch/good.in"
input=$scratch/good.in run good
expect "good lines: exit code" 0 "$code"
expect_same "good lines" "$scratch/good.jsonl" \
    <(grep '"status_code":200' "$scratch/bad.jsonl")

: >"$scratch/empty.in"
input=$scratch/empty.in run empty
expect "empty: exit code" 0 "$code"
expect "empty: bytes" 0 "$(wc -c <"$scratch/empty.jsonl")"

# refuse NAME CODE TEXT [ARGUMENT...]: the run ends with the code and the text,
# and makes no output.
refuse() {
    local name=$1 wanted=$2 text=$3
    shift 3
    run "$name" "$@"
    expect "$name: exit code" "$wanted" "$code"
    expect_text "$name" "$scratch/$name.err" "$text"
    [ ! -s "$scratch/$name.jsonl" ] || fail "$name: there is an output"
}
input=$scratch/nothing.in refuse missing-input 1 "$scratch/nothing.in"
input=$scratch refuse folder-input 2 "$scratch"
input=$scratch/good.in
refuse no-model 1 "$scratch/config.json" --set "model.path=$scratch"
refuse typo-set 2 'did you mean "roles.decode"' --set roles.decod=2
refuse small-slab 2 'kv.slab' --set kv.slab=64KiB
refuse odd-block 2 'kv.block_tokens' --set kv.block_tokens=24
refuse bad-kernel 2 'engine.kernel' --set engine.kernel=mmx

# The job file: file, line and the nearest key.
sed '2s/decode/decods/' "$job" >"$scratch/typo.conf"
"$akin" run -c "$scratch/typo.conf" -i "$input" -o "$scratch/typo.jsonl" \
    2>"$scratch/typo.err"
expect "typo: exit code" 2 $?
expect_text "typo" "$scratch/typo.err" "typo.conf:2"
expect_text "typo" "$scratch/typo.err" 'did you mean "roles.decode"'

# An output that is there is not written over.
echo 'mine' >"$scratch/mine.jsonl"
resume mine
expect "existing output: exit code" 1 "$code"
expect_text "existing output" "$scratch/mine.err" --resume
expect "existing output" mine "$(cat "$scratch/mine.jsonl")"
"$akin" run -c "$job" -i "$input" -o "$scratch/none/out" 2>"$scratch/place.err"
expect "unwritable: exit code" 1 $?
expect_text "unwritable" "$scratch/place.err" "$scratch/none/out"

# Too few ranks, started by hand.
mpirun -n 3 "$akin" run -c "$job" -i "$input" -o "$scratch/ranks.jsonl" \
    --set roles.decode=4 2>"$scratch/ranks.err"
expect "ranks: exit code" 2 $?
expect_text "ranks" "$scratch/ranks.err" "has 6 ranks"
expect_text "ranks" "$scratch/ranks.err" "started with 3"
expect "ranks: said once" 1 "$(grep -c 'started with 3' "$scratch/ranks.err")"
expect_none_left ranks
finish
