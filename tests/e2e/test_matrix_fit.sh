#!/usr/bin/env bash
# Policies that route by a fit: the answers are those of any other, and a fit
# that is not for the job ends it before it begins.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# make_fit K: centroid w has the experts w, w + K, ... of all 6 layers, each to
# the same part.
make_fit() {
    awk -v k="$1" 'BEGIN {
        printf "{\"L\": 6, \"e\": 32, \"top_k\": 4, \"k\": %d, ", k
        printf "\"variant\": \"count\", \"tau\": 0.02, "
        printf "\"domains\": {\"code\": 5, \"text\": 4}, \"centroids\": ["
        for (w = 0; w < k; w++) {
            printf "%s[", w ? ", " : ""
            n = 0
            for (e = 0; e < 32; e++)
                n += e % k == w
            for (i = 0; i < 192; i++)
                printf "%s%.17g", i ? ", " : "",
                    i % 32 % k == w ? 1 / sqrt(6 * n) : 0
            printf "]"
        }
        print "]}"
    }'
}
fit=$scratch/fit.json
make_fit 2 >"$fit"

# One in two requests says what it is about.
input=$scratch/labelled.in
awk 'NR % 2 { sub(/"body": \{/, "&\"metadata\": {\"domain\": \"code\"}, ") } 1' \
    "$prompts" >"$input"
expect "labels" 13 "$(grep -c '"domain": "code"' "$input")"

run base --set routing.decode=jsq
expect "base: exit code" 0 "$code"
for policy in auto domain eldr-static eldr union union-band union-pull; do
    run "$policy" --set routing.decode=$policy --set "routing.fit=$fit"
    expect "$policy: exit code" 0 "$code"
    expect_same "$policy" "$scratch/base.jsonl" "$scratch/$policy.jsonl"
done
expect "auto" union-pull "$(value auto policy)"
expect "auto: setting" auto "$(value auto policy_setting)"
expect_text "auto" "$scratch/auto.err" 'union-pull (auto)'
for policy in eldr-static eldr union-band; do
    expect_text "$policy: band" "$scratch/$policy.err" \
        'workers in the locality band'
done
expect_text "eldr: refits" "$scratch/eldr.err" \
    'refits started, installed, failed'

# refuse NAME TEXT [ARGUMENT...]
refuse() {
    local name=$1 text=$2
    shift 2
    run "$name" "$@"
    expect "$name: exit code" 2 "$code"
    expect_text "$name" "$scratch/$name.err" "$text"
    [ ! -s "$scratch/$name.jsonl" ] || fail "$name: there is an output"
}
refuse without 'routing.fit' --set routing.decode=eldr
refuse missing "$scratch/none.json" --set "routing.fit=$scratch/none.json"
refuse workers 'k (decode workers) is 2, this job has 3' \
    --set "routing.fit=$fit" --set roles.decode=3
sed 's/"L": 6, "e": 32/"L": 12, "e": 16/' "$fit" >"$scratch/other.fit"
refuse other-model 'other.fit: the fit'"'"'s L (layers) is 12, this job has 6' \
    --set "routing.fit=$scratch/other.fit"
head -c 1000 "$fit" >"$scratch/cut.fit"
refuse cut "$scratch/cut.fit" --set "routing.fit=$scratch/cut.fit"
finish
