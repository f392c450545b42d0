#!/usr/bin/env bash
# akin fit: a fit of a hand-made trace, what it shows, and what it refuses.
#
# usage: test_fit.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# Forty requests of 12 rows, two layers, eight experts, top 2: the even ones of
# law choose among the experts 0 to 3, the odd ones of code among 4 to 7.
trace=$work/t.json
{
    echo '{"model": "m", "layers": 2, "experts": 8, "top_k": 2, "records": ['
    for i in $(seq 0 39); do
        [ "$i" -eq 0 ] || echo ,
        domain=$([ $((i % 2)) -eq 0 ] && echo law || echo code)
        echo "{\"id\": $i, \"domain\": \"$domain\", \"n_tokens\": 12,"
        echo " \"offset\": $((i * 48))}"
        base=$((i % 2 * 4))
        for row in $(seq 0 11); do
            a=$(((row + i / 2) % 3))
            # shellcheck disable=SC2059 # the escapes are the point
            printf "\\x0$((base + a))\\x0$((base + 3))\\x0$((base + 3))\\x0$((base + a))" \
                >>"$work/t.u8"
        done
    done
    echo ']}'
} >"$trace"

accept fit --help
holds '--variant'
accept fit "$trace" -o "$work/f.json" -K 2 --prompt-tokens 4
holds 'purity 1.00 over 2 domains'
holds 'clusters      20 20 requests'
holds 'The first rows of decode play the prompt'
holds 'held-out gain'
accept fit --show "$work/f.json"
holds '2 workers, '
holds 'domain        code: 20 requests'
accept fit --show "$work/f.json" --json
same workers "$(value workers)" 2
same top_k "$(value top_k)" 2

# The same input and seed give the same bytes.
accept fit "$trace" -o "$work/g.json" -K 2 --prompt-tokens 4 --json
same requests "$(value requests)" 40
same purity "$(value purity)" 1.0
cmp -s "$work/f.json" "$work/g.json" || complain "two fits differ"

refuse 2 'no trace' fit -o "$work/x.json" -K 2
refuse 2 'no output' fit "$trace" -K 2
refuse 2 'decode workers' fit "$trace" -o "$work/x.json"
refuse 2 'variant' fit "$trace" -o "$work/x.json" -K 2 --variant idf
refuse 2 '--prompt-tokens' fit "$trace" -o "$work/x.json" -K 2
refuse 2 'more' fit "$trace" -o "$work/x.json" -K 41 --prompt-tokens 4
refuse 1 'no-such.json' fit "$work/no-such.json" -o "$work/x.json" -K 2
refuse 1 'f.json' fit "$work/f.json" -o "$work/x.json" -K 2
refuse 1 't.json' fit --show "$trace"
[ ! -e "$work/x.json" ] || complain "a refused fit left a file"

# A fit replaces a fit, and nothing else: least of all the trace it is made of.
cp "$trace" "$work/t.copy"
for there in "$trace" "$work/t.u8"; do
    refuse 1 'is no fit file' fit "$trace" -o "$there" -K 2 --prompt-tokens 4
done
cmp -s "$trace" "$work/t.copy" || complain "the trace was written over"
refuse 1 'no-such-folder' fit "$trace" -o "$work/no-such-folder/x.json" -K 2 \
    --prompt-tokens 4
refuse 2 'leave out' fit --show "$work/f.json" -K 2
refuse 2 't.json: of 40 records none has 13 rows' fit "$trace" \
    -o "$work/x.json" -K 2 --prompt-tokens 4 --min-tokens 13
accept fit "$trace" -o "$work/g.json" -K 1 --prompt-tokens 4 --variant count
holds 'One worker takes whatever comes'
accept fit --show "$work/g.json"
holds '1 workers, '

# A trace that knows its prompts takes no stand-ins.
accept trace import "$trace" -o "$work/known.json" --prompt-tokens 4
refuse 2 'leave --prompt-tokens out' fit "$work/known.json" \
    -o "$work/x.json" -K 2 --prompt-tokens 4

finish
