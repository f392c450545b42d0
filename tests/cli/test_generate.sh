#!/usr/bin/env bash
# Tests of akin generate: codes, messages, and output that can be worked out.
#
# usage: test_generate.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"
golden=$top/tests/fixtures/engine/golden.json

# On tiny-moe with one thread.
generate=(generate -m "$model" -t 1)

# A model directory of links, from which a case takes or spoils a file.
copy_model() {
    rm -rf "$work/model"
    mkdir "$work/model"
    ln -s "$model"/*.json "$model"/model.safetensors "$work/model/"
}

# ---- what must be refused ----

refuse 2 'no model: give its directory with -m' generate -p x
refuse 1 "$work/none/config.json" generate -m "$work/none" -p x
refuse 1 "$model/config.json/config.json" generate -m "$model/config.json" -p x

copy_model
rm "$work/model/tokenizer.json"
refuse 1 "$work/model/tokenizer.json" generate -m "$work/model" -p x
copy_model
rm "$work/model/model.safetensors"
refuse 1 "$work/model: holds neither model.safetensors" generate -m "$work/model" -p x
for bytes in 0 7 100 60000 11201199; do
    copy_model
    rm "$work/model/model.safetensors"
    head -c "$bytes" "$model/model.safetensors" >"$work/model/model.safetensors"
    refuse 1 "$work/model/model.safetensors" generate -m "$work/model" -p x
done
copy_model
rm "$work/model/config.json"
sed 's/"num_experts": 32/"num_experts": 33/' "$model/config.json" \
    >"$work/model/config.json"
refuse 1 'model.layers.0' generate -m "$work/model" -p x
echo '{' >"$work/model/config.json"
refuse 1 "$work/model/config.json" generate -m "$work/model" -p x
sed 's/"rope_scaling": null/"rope_scaling": {"rope_type": "yarn"}/' \
    "$model/config.json" >"$work/model/config.json"
refuse 1 'rope' generate -m "$work/model" -p x
copy_model
rm "$work/model/tokenizer.json"
head -c 1000 "$model/tokenizer.json" >"$work/model/tokenizer.json"
refuse 1 "$work/model/tokenizer.json" generate -m "$work/model" -p x

refuse 2 'give one prompt' "${generate[@]}"
refuse 2 'give one prompt' "${generate[@]}" -p a --tokens 1
refuse 2 'the prompt is empty' "${generate[@]}" -p ''
refuse 1 'prompt: ' "${generate[@]}" -p $'ab\xff'
refuse 2 'token 2 is 4096, the vocabulary has 4096' "${generate[@]}" \
    --tokens 1,4096
refuse 2 'token 1 is 4294967295' "${generate[@]}" --tokens 4294967295
ids=$(seq -s , 1 1024)
refuse 2 'the prompt has 1024 tokens' "${generate[@]}" --tokens "$ids"
for bad in '' ',' '1,' ',1' '1,,2' a '1,b' 1.5 -1 '1,-2' 4294967296 '1 2' \
    99999999999999999999999; do
    refuse 2 'is not a token id' "${generate[@]}" --tokens "$bad"
done

refuse 1 "$work/none" "${generate[@]}" --chat "$work/none"
chat=$work/chat.json
for bad in '' '[' '{}' '7' '[{"role":"user"}]' '[{"content":"x"}]' \
    '[{"role":7,"content":"x"}]' '{"messages":7}'; do
    echo "$bad" >"$chat"
    refuse 1 "$chat" "${generate[@]}" --chat "$chat"
done

echo '[]' >"$chat"
refuse 2 "$chat" "${generate[@]}" --chat "$chat"

refuse 2 'unknown kernel path "sse9"' "${generate[@]}" -p x --kernel sse9
refuse 2 "unrecognized option '--frob'" "${generate[@]}" -p x --frob
refuse 2 'no such argument' "${generate[@]}" -p x y
refuse 2 "requires an argument -- 'n'" "${generate[@]}" -p x -n
refuse 2 '--max-tokens 0' "${generate[@]}" -p x -n 0
refuse 2 '--max-tokens -1' "${generate[@]}" -p x -n -1
refuse 2 '--max-tokens 1x' "${generate[@]}" -p x -n 1x
refuse 2 '--seed 18446744073709551616' "${generate[@]}" -p x \
    --seed 18446744073709551616
refuse 2 'temperature' "${generate[@]}" -p x --temperature -0.5
refuse 2 'temperature' "${generate[@]}" -p x --temperature nan
refuse 2 'temperature' "${generate[@]}" -p x --temperature warm
refuse 2 'top-p' "${generate[@]}" -p x --top-p 0
refuse 2 'top_p' "${generate[@]}" -p x --top-p 1.5
refuse 2 'min_p' "${generate[@]}" -p x --min-p 1
refuse 2 'repetition' "${generate[@]}" -p x --repetition-penalty -1
refuse 2 '--threads 0' "${generate[@]}" -p x -t 0
refuse 2 '8, 16, 32 or 64' "${generate[@]}" -p x --block-tokens 12
refuse 2 '--chunk 0' "${generate[@]}" -p x --chunk 0
refuse 2 '--stop' "${generate[@]}" -p x --stop ''
stops=()
for i in $(seq 17); do
    stops+=(--stop "$i")
done
refuse 2 'at most 16' "${generate[@]}" -p x "${stops[@]}"

# ---- what comes out ----

accept generate --help
holds '--temperature'
prompt=$("$json_value" "$golden" cases 0 prompt)
accept "${generate[@]}" -p "$prompt" -n 24 --json
same 'tokens' "$(value tokens)" "$("$json_value" "$golden" cases 0 tokens)"
same 'ids' "$(value prompt_tokens)" \
    "$("$json_value" "$golden" cases 0 prompt_tokens)"
same 'text' "$(value text)" "$("$json_value" "$golden" cases 0 text)"
same 'reason' "$(value finish_reason)" length
same 'best' "$(value top 0 0 0)" "$(value tokens 0)"
value timings prefill_ms >/dev/null
value counts 5 31 >/dev/null
text=$(value text)

# Text goes to stdout as it is, with a newline at the end.
accept "${generate[@]}" -p "$prompt" -n 24
same 'text mode' "$(cat "$work/out")" "$text"
accept "${generate[@]}" --tokens "$("$json_value" "$golden" cases 0 \
    prompt_tokens | tr -d '[]')" -n 24
same 'by ids' "$(cat "$work/out")" "$text"

# The same bits whatever the blocks and chunks.
accept "${generate[@]}" -p "$prompt" -n 24 --block-tokens 64 --chunk 5 --json
same 'other blocks' "$(value text)" "$text"

# The text ends before the stop string that comes first.
accept "${generate[@]}" -p "$prompt" -n 24 --json --stop zzz --stop return
same 'reason' "$(value finish_reason)" stop
same 'stopped' "$(value text)" "${text%%return*}"
accept "${generate[@]}" -p "$prompt" -n 24 --stop return
same 'stopped, text mode' "$(cat "$work/out")" "${text%%return*}"

# Draws follow the seed, and nothing else.
draw() {
    accept "${generate[@]}" -p "$prompt" -n 24 --temperature 1 --json "$@"
    value tokens
}
first=$(draw --seed 7)
same 'seed 7 again' "$(draw --seed 7)" "$first"
same 'seed 7, other blocks' "$(draw --seed 7 --block-tokens 8 --chunk 1)" \
    "$first"
[ "$(draw --seed 8)" != "$first" ] || complain 'seed 8 draws as seed 7'
same 'top-k 1 is greedy' "$(draw --seed 8 --top-k 1)" \
    "$("$json_value" "$golden" cases 0 tokens)"

# The context bounds what is generated.
accept "${generate[@]}" --tokens "${ids%,1024}" -n 50 --ignore-eos --json
same 'last position' "$(value tokens | tr -cd , | wc -c)" 0
same 'reason' "$(value finish_reason)" length

# A chat is the model's template around the messages.
echo '{"messages":[{"role":"user","content":"How do I list files?"}]}' >"$chat"
accept "${generate[@]}" --chat "$chat" -n 1 --json
same 'chat' "$(value prompt_tokens)" \
    "$("$json_value" "$golden" cases 14 prompt_tokens)"

# Logs go to stderr, so that stdout stays one object.
AKIN_LOG=trace call "${generate[@]}" -p x -n 1 --json
same 'code' "$code" 0
value tokens >/dev/null
grep -q 'engine' "$work/err" || complain 'no log on stderr'

full "${generate[@]}" -p x -n 2
full "${generate[@]}" -p x -n 2 --json
full generate --help
finish
