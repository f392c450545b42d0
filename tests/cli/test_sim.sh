#!/usr/bin/env bash
# akin sim: the table, the JSON, the same bytes from several threads, the
# errors.
#
# usage: test_sim.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# Short requests of the smallest model there is.
sim=$work/small.sim
cat >"$sim" <<'END'
model = "gpt-oss-20b";
workload = { prompt_tokens = 24.0; output_tokens = 16.0; };
requests = { rate = 200.0; warmup = 60; measured = 120; };
roles = { prefill = 2; decode = 3; };
routing = { policies = "rr,jsq,eldr,union-band"; };
fit = { requests = 60; max_tokens = 24; };
seeds = 2;
END

accept sim --help
holds '--threads'
accept sim --keys
holds 'decode.max_batch'
holds 'requests.rate'

# ---- the table, and the same from two threads ----

accept sim -c "$sim"
holds 'gpt-oss-20b on mi300x, 2P3D, task, 200 requests/s'
holds '2 seeds of 120 requests after 60'
for policy in rr jsq eldr union-band; do
    grep -q "^$policy  *[0-9]" "$work/out" || complain "no row of $policy"
done
cp "$work/out" "$work/table"
accept sim -c "$sim" --threads 2
cmp -s "$work/table" "$work/out" || complain 'another table from two threads'
accept sim -c "$sim" --set seed=3
cmp -s "$work/table" "$work/out" && complain 'equal tables of two seeds'

# ---- drift ----

accept sim -c "$sim" --set workload.shares=0.5,0.5,0,0 \
    --set workload.later_shares=0,0,1,1
holds 'before: TPOT p50'
grep -c '^union-band' "$work/out" | grep -qx 2 || complain 'no second table'

# ---- JSON ----

accept sim -c "$sim" --json --set seeds=1
same 'policies' "$(value policies 0 policy) $(value policies 3 policy)" \
    'rr union-band'
for i in 0 1 2 3; do
    same "conservation $i" "$(value policies $i arrived)" \
        "$(($(value policies $i ended) + $(value policies $i left)))"
done
same 'no interval of one seed' "$(value policies 0 p50_tpot_ms half_width)" \
    null
# Requests are prefilled alike whatever decodes them.
same 'ttft' "$(value policies 0 p99_ttft_ms mean)" \
    "$(value policies 2 p99_ttft_ms mean)"
# The curve of a time goes through its median and its 95th percentile.
same 'median' "$(value policies 2 tpot_percentiles_ms 10 1)" \
    "$(value policies 2 p50_tpot_ms mean)"
same 'p95' "$(value policies 2 ttft_percentiles_ms 19 1)" \
    "$(value policies 2 p95_ttft_ms mean)"
same 'settings' "$(value settings requests.rate) \
$(value settings roles.decode) $(value settings ep.placement) \
$(value settings faults.detect)" '200.0 3 activation 2.0'
same 'watched' "$(value policies 2 load n_workers)" 3
# Alone, a token activates the top four experts of every layer, and the step is
# the one that a cost model of the same sizes has.
accept sim -c "$sim" --json --set seeds=1 --set requests.rate=0.01 \
    --set routing.policies=rr
same 'top-k' "$(value policies 0 distinct_experts mean)" 4.0
same 'batch' "$(value policies 0 batch mean)" 1.0
# Two ranks: the busiest has from half to all of them.
accept sim -c "$sim" --json --set roles.ep=2 --set routing.policies=union
awk -v all="$(value policies 0 distinct_experts mean)" \
    -v most="$(value policies 0 busiest_rank_experts mean)" \
    'BEGIN { exit !(most >= all / 2 && most < all) }' ||
    complain 'the busiest of two ranks'

# ---- a trace, served whole by a batch job, with a fit made of it ----

accept trace make --like gpt-oss-20b --requests 60 --prompt-tokens 24 \
    --output-tokens 12 -o "$work/trace.json"
accept fit "$work/trace.json" -K 3 --variant count -o "$work/fit.json"
batch=(-c "$sim" --set "routes.trace=$work/trace.json"
    --set requests.rate=0 --set requests.in_flight=12
    --set requests.total=60 --set requests.warmup=0
    --set requests.measured=60 --set "fit.file=$work/fit.json")
accept sim "${batch[@]}" --json
same 'every request' "$(value policies 2 ended) $(value policies 2 left)" '120 0' # of two seeds
same 'none twice' "$(value policies 2 copies_percent mean)" 0.0
accept sim "${batch[@]}"
holds "fit: $work/fit.json, rho "
refuse 1 "fit.file: $work/none: cannot open" sim "${batch[@]}" --set fit.file="$work/none"
refuse 2 "this job has 4" sim "${batch[@]}" --set roles.decode=4

# ---- what is refused ----

refuse 2 '-c SIM is missing' sim
refuse 2 'akin sim --keys' sim -c "$sim" --set no.such=1
refuse 2 'did you mean "gpt-oss-20b"?' sim -c "$sim" --set model=gpt-oss-20
refuse 2 'did you mean "union"?' sim -c "$sim" --set routing.policies=rr,onion
refuse 2 'names none' sim -c "$sim" --set routing.policies=,
refuse 2 'task and language' sim -c "$sim" --set workload.kind=poems
refuse 2 'workload.shares: 4 numbers' sim -c "$sim" \
    --set workload.shares=1,2,3
refuse 2 'workload.later_shares: 4 numbers' sim -c "$sim" \
    --set workload.later_shares=0,0,0,0
refuse 2 'requests.rate' sim -c "$sim" --set requests.rate=0
refuse 2 'fit.requests: 3 decode workers' sim -c "$sim" --set fit.requests=2
refuse 2 'holds the KV of 20' sim -c "$sim" --set decode.kv_tokens=20
refuse 2 '--threads 0' sim -c "$sim" --threads 0
refuse 1 'neither mi300x' sim -c "$sim" --set machine="$work/none"
refuse 1 'none.sim' sim -c "$work/none.sim"
echo 'roles = { prefil = 2; };' >"$work/bad.sim"
refuse 2 'roles.prefill' sim -c "$work/bad.sim"
full sim -c "$sim"
finish
