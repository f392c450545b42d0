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

# Decisions take a part of the events' time, whatever else runs.
call sim -c "$sim" --cost --threads 4
awk '/ events of / { n++; if ($7 * $10 > $2 * $5 * 1.1) exit 1 }
     END { if (n != 4) exit 1 }' n=0 <(tr -d , <"$work/err") ||
    complain 'what decisions cost'
cmp -s "$work/table" "$work/out" || complain 'another table with its cost'

# The first seed fails late, the others early: the error is the first one's.
late=(-c "$sim" --set routing.policies=rr --set 'workload.shares=1,1,1,1'
    --set workload.output_tokens=100 --set decode.kv_tokens=239
    --set requests.warmup=2000 --set routes.requests=1000
    --set requests.rate=100)
refuse 2 'a request has 249 tokens' sim "${late[@]}" --set seed=4
refuse 2 'a request has 278 tokens' sim "${late[@]}" --set seed=3 \
    --set seeds=6 --threads 6

# ---- drift ----

accept sim -c "$sim" --set workload.shares=0.5,0.5,0,0 \
    --set workload.later_shares=0,0,1,1
holds 'before: TPOT p50'
grep -c '^union-band' "$work/out" | grep -qx 2 || complain 'no second table'

# ---- copies ----

# All at once, and no request beside a copy of itself, whether the mix is the
# pool's or drawn.
together=(--json --set seeds=1 --set routing.policies=rr
    --set requests.rate=0 --set requests.in_flight=40 --set requests.warmup=0
    --set requests.total=40 --set requests.measured=40)
accept sim -c "$sim" "${together[@]}"
same 'no copies' "$(value policies 0 copies_percent mean)" 0.0
accept sim -c "$sim" "${together[@]}" --set workload.shares=1,1,1,1 \
    --set routes.requests=400
same 'no copies of a drawn mix' \
    "$(value policies 0 copies_percent mean)" 0.0
# Fewer requests than are inside: the command says what to raise.
call sim -c "$sim" "${together[@]}" --set routes.requests=20
grep -q 'raise routes.requests' "$work/err" || complain 'no word of few requests'

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
# An output of one token has no time between two, and no step.
call sim -c "$sim" --json --set workload.output_tokens=1 \
    --set routing.policies=rr,jsq
same 'no tpot' "$(value policies 1 mean_tpot_ms mean) \
$(value policies 1 mean_tpot_ms change_percent) \
$(value policies 1 tpot_percentiles_ms 10 1) \
$(value policies 1 phases 0 distinct_experts)" 'null null null null'
call sim -c "$sim" --set workload.output_tokens=1 --set routing.policies=rr,jsq
grep -q '^jsq .* - .* - ' "$work/out" || complain 'a time between no tokens'
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

# ---- a batch job ----

# All requests end, no more than may be are inside, and the table is the same
# from two threads when workers die.
job=(--set requests.rate=0 --set requests.in_flight=24
    --set requests.total=200 --set "routing.policies=rr,union")
faults=(--set faults.mtbf=2s --set faults.down=300ms --set faults.detect=50ms
    --set "faults.at=decode:1:0.2, prefill:0:0.3"
    --set prefill.cache_tokens=200 --set workload.shared_prefix_tokens=40)
call sim -c "$sim" --json "${job[@]}"
same 'all end' "$(value policies 0 ended) $(value policies 0 left)" '400 0'
awk -v inside="$(value policies 0 requests_inside mean)" \
    'BEGIN { exit !(inside > 10 && inside <= 24) }' ||
    complain 'the requests inside'
same 'no deaths' "$(value policies 0 deaths mean)" 0.0
same 'nothing cached' "$(value policies 0 prefix_cached_percent mean)" 0.0
same 'load over time' "$(value policies 0 load n_workers)" 3
call sim -c "$sim" "${job[@]}" "${faults[@]}"
holds '24 requests in flight'
holds 'tokens anew'
holds 'cached %'
cp "$work/out" "$work/table"
call sim -c "$sim" "${job[@]}" "${faults[@]}" --threads 2
cmp -s "$work/table" "$work/out" || complain 'other faults from two threads'
call sim -c "$sim" --json "${job[@]}" "${faults[@]}"
same 'all end in spite of deaths' \
    "$(value policies 0 ended) $(value policies 0 left)" '400 0'

# ---- requests of a trace ----

accept trace make --like gpt-oss-20b --requests 80 --prompt-tokens 20 \
    --output-tokens 10 --rate 100 -o "$work/t.json"
# Few requests for so many at a time: copies meet, and the command says so.
call sim -c "$sim" --json --set routes.trace="$work/t.json" \
    --set fit.requests=40 --set requests.warmup=10 \
    --set requests.measured=100 --set roles.decode=2
grep -q 'the trace is short' "$work/err" || complain 'no word of copies'
same 'its name' "$(value workload)" "$work/t.json"
same 'the policies of a trace' "$(value policies 3 policy)" union-band
accept sim -c "$sim" --set routes.trace="$work/t.json" \
    --set requests.rate=0 --set requests.arrivals=trace \
    --set routing.policies=rr,jsq --set requests.warmup=10 \
    --set requests.measured=60
holds 'arrivals of the trace'
# All at once there is no time between two passes of the trace; all within a few
# microseconds there is too little.
by_time=(-c "$sim" --set requests.rate=0 --set requests.arrivals=trace
    --set routing.policies=rr --set requests.warmup=10
    --set requests.measured=60)
sed -E 's/"arrival_s": *[0-9.]+/"arrival_s": 3.5/' "$work/t.json" \
    >"$work/once.json"
refuse 2 'set requests.total to 80 or less' sim "${by_time[@]}" \
    --set routes.trace="$work/once.json"
accept sim "${by_time[@]}" --set routes.trace="$work/once.json" \
    --set requests.total=80
sed -E 's/"arrival_s": *[0-9.]*([0-9]{3})/"arrival_s": 0.00000\1/' \
    "$work/t.json" >"$work/soon.json"
refuse 2 'have more workers or fewer requests' sim "${by_time[@]}" \
    --set routes.trace="$work/soon.json"
refuse 2 'set model' sim -c "$sim" --set routes.trace="$work/t.json" \
    --set model=gpt-oss-120b
refuse 2 'more than half of the 80' sim -c "$sim" \
    --set routes.trace="$work/t.json" --set fit.requests=60
refuse 2 'the mix is that of routes.trace' sim -c "$sim" \
    --set routes.trace="$work/t.json" --set workload.shares=1,1,1,1
# What a trace has cannot be set beside it, unless it takes the file's place.
refuse 2 'workload.prompt_tokens: not together with routes.trace' sim \
    -c "$sim" --set routes.trace="$work/t.json" --set workload.prompt_tokens=9
refuse 2 'workload.shared_prefix_tokens: not together' sim -c "$sim" \
    --set routes.trace="$work/t.json" --set workload.shared_prefix_tokens=9
sed "s|^workload = .*|workload = { shared_prefix_tokens = 8; };|" \
    "$sim" >"$work/shared.sim"
refuse 2 'workload.shared_prefix_tokens: requests of' sim -c \
    "$work/shared.sim" --set routes.trace="$work/t.json"
sed "s|^workload|routes = { trace = \"$work/t.json\"; };\nworkload|" \
    "$sim" >"$work/both.sim"
refuse 2 'workload.prompt_tokens: not together' sim -c "$work/both.sim"
# A signature of less of a prompt, and a fit of less of a request, are others.
learning=(-c "$sim" --json --set "routes.trace=$work/t.json" --set seeds=1
    --set fit.requests=40 --set roles.decode=2 --set requests.warmup=0
    --set requests.total=40 --set requests.measured=40
    --set routing.policies=eldr --set requests.rate=1000)
for setting in routing.tau=0.1 routing.signature_tokens=1 fit.max_tokens=1; do
    call sim "${learning[@]}" --set "$setting"
    printf '%s\n' "$(value rho)" >>"$work/rhos"
    printf '%s\n' "$(value policies 0 distinct_experts mean)" \
        >>"$work/experts"
done
same 'fits of a token and of 24' "$(sort -u "$work/rhos" | wc -l)" 2
same 'signatures of a token and of all' \
    "$(sort -u "$work/experts" | wc -l)" 3
refuse 1 'none.json' sim -c "$sim" --set routes.trace="$work/none.json"

# ---- what is refused ----

refuse 2 'requests.in_flight' sim -c "$sim" --set requests.in_flight=8
refuse 2 'routes.trace' sim -c "$sim" --set requests.rate=0 \
    --set requests.arrivals=trace
refuse 2 'requests.total: 100' sim -c "$sim" --set requests.total=100
refuse 2 'routes.memory' sim -c "$sim" --set routes.memory=1KiB
refuse 2 'faults.at: "decode:3:1"' sim -c "$sim" --set faults.at=decode:3:1
refuse 2 'faults.at: "router' sim -c "$sim" --set faults.at=router:0:1
refuse 2 'all decode workers are dead' sim -c "$sim" \
    --set faults.at=decode:0:0,decode:1:0,decode:2:0

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
refuse 2 'come at once where 180 are in flight' sim -c "$sim" \
    --set requests.rate=0 --set requests.in_flight=180
refuse 2 'fit.requests: 3 decode workers' sim -c "$sim" --set fit.requests=2
refuse 2 'KV of 20: raise decode.kv_tokens' sim -c "$sim" --set decode.kv_tokens=20
refuse 2 '--threads 0' sim -c "$sim" --threads 0
refuse 1 'neither mi300x' sim -c "$sim" --set machine="$work/none"
refuse 1 'none.sim' sim -c "$work/none.sim"
echo 'roles = { prefil = 2; };' >"$work/bad.sim"
refuse 2 'roles.prefill' sim -c "$work/bad.sim"
# A name that JSON cannot have is told before the simulation.
cp "$sim" "$work/x"$'\xff'.sim
refuse 2 'is not UTF-8, as JSON must be' sim -c "$work/x"$'\xff'.sim --json
accept sim -c "$work/x"$'\xff'.sim --set routing.policies=rr --set seeds=1
full sim -c "$sim"
finish
