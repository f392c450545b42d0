#!/usr/bin/env bash
# akin report: a page has the figures of hand-made files, is whole or is not
# there, and files that are no runs are refused.
#
# usage: test_report.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# summary FILE POLICY MODEL TPOT RATE: a summary with these figures.
summary() {
    cat >"$work/$1" <<END
{"backend": "akin", "policy": "$2", "model_id": "$3", "kernel": "avx2",
 "date": "20261130-101112", "num_prompts": 4, "completed": 4, "failed": 0,
 "duration": 2.0, "output_throughput": 100.0, "request_throughput": $5,
 "mean_ttft_ms": 5.0, "p50_ttft_ms": 4.25, "p99_ttft_ms": 9.0,
 "mean_tpot_ms": $4, "p50_tpot_ms": $4, "p90_tpot_ms": 70, "p99_tpot_ms": 80,
 "steps": 50, "mean_batch": 3.5, "distinct_experts_per_step": 12.5,
 "kv_blocks_moved": 7, "prefix_cache_hits": 0,
 "predicted_max_rank_distinct_experts":
   {"steps": 9, "mean_expected": 6.25, "mean_observed": 6.75},
 "distinct_experts_by_batch": [
   {"batch": 1, "steps": 10, "distinct_experts": 8.0},
   {"batch": 8, "steps": 10, "distinct_experts": 20.0}],
 "workers": [
   {"role": "prefill", "tokens": 111, "idle_share": 0.5},
   {"role": "decode", "tokens": 300, "idle_share": 0.25},
   {"role": "decode", "tokens": 500, "idle_share": 0.75}]}
END
}

# replay FILE IN_FLIGHT P50: a replay of two policies.
replay() {
    cat >"$work/$1" <<END
{"trace": "t.json", "model": "m", "in_flight": $2, "rate": null,
 "caveats": ["the fit may have seen them"], "policies": [
 {"name": "jsq", "policy": "jsq",
  "tpot_p50_ms": {"mean": $3, "half_width": 0.125}},
 {"name": "union-band tau 0.1", "policy": "union-band",
  "tpot_p50_ms": {"mean": 11.5, "half_width": null}}]}
END
}

# page TEXT: the page has this.
page() {
    grep -qF -- "$1" "$work/page.html" || complain "the page has no \"$1\""
}

# lacks TEXT: the page does not have this.
lacks() {
    ! grep -qF -- "$1" "$work/page.html" || complain "the page has \"$1\""
}

# whole: the page is well formed, and shows nothing but itself.
whole() {
    if command -v xmllint >/dev/null; then
        # Elements of HTML 5 are unknown to it.
        xmllint --html --noout "$work/page.html" 2>&1 |
            grep 'error :' | grep -v 'Tag [a-z]* invalid' >"$work/bad"
        [ ! -s "$work/bad" ] || complain "form: $(head -n 2 "$work/bad")"
    fi
    if command -v tidy >/dev/null; then
        tidy -q -e "$work/page.html" >"$work/bad" 2>&1
        [ ! -s "$work/bad" ] || complain "form: $(head -n 2 "$work/bad")"
    fi
    [ "$(tail -n 1 "$work/page.html")" = '</html>' ] || complain 'no end'
    same 'open and closed figures' "$(grep -c '<figure>' "$work/page.html")" \
        "$(grep -c '</figure>' "$work/page.html")"
    lacks '<script'
    lacks 'http'
    lacks 'nan'
    lacks 'inf"'
    [ -z "$(find "$work" -name '*.tmp.*')" ] || complain 'a temporary is left'
}

summary a.json jsq model 20.0 2.0
summary b.json union model 10.0 3.0
accept report "$work/a.json" "$work/b.json" -o "$work/page.html"
whole
page 'a: jsq'
page '<td>20.000</td>'
page '★ 10.000</td>'
page 'date 20261130-101112; model model; policy union'
page '>6.25</text>'
page '>6.75</text>'
page 'Time to first token (TTFT)'
page 'with nothing but another load'
# The least and the most loaded worker are drawn 3 to 5: 300 and 500 of the
# axis that ends at 500, which is 204 high.
page 'V91.6h'
page 'V10.0h'
lacks 'class="warn">'

# Two runs of a policy at different loads make a line; those of different models
# do not.
summary c.json jsq model 30.0 4.0
accept report "$work/a.json" "$work/c.json" -o "$work/page.html"
whole
page 'Median TPOT against load: model'
page 'requests answered per second'
summary c.json jsq 'x&lt;&"' 30.0 4.0
sed 's/"x&lt;&""/"<b>x\&\\"y\\u0007"/' "$work/c.json" >"$work/<i>.json"
accept report "$work/a.json" "$work/<i>.json" -o "$work/page.html"
whole
lacks 'against load:'
page 'The runs served different models.'
page '&lt;b&gt;x&amp;&quot;y'
page '&lt;i&gt;: jsq'
lacks '<b>'
lacks '<i>'
# A name that is not UTF-8 is no reason for a page that is not.
cp "$work/a.json" "$work/$(printf 'n\377.json')"
accept report "$work/$(printf 'n\377.json')" "$work/b.json" \
    -o "$work/page.html"
page 'n�: jsq'

# Load over time and experts by worker, in figures that can be worked out: two
# curves below 3 of 96 high and 5 s wide, and cells of four experts in the order
# 2, 0, 3, 1. Shares of worker 0 are 3, 1/2, 0 and 1/2 of an even one.
watched='"load": {"bin_s": 2, "end_s": 5, "n_workers": 9,
   "workers": [[1, 0, 2], [3, 0, 2]]},
 "experts": {"difference_bits": [0.25, 0.5], "layer": 1,
   "choices": [[1, 1, 6, 0], [0, 3, 1, 0]]},'
awk -v w="$watched" '{ print } NR == 1 { print w }' "$work/a.json" \
    >"$work/w.json"
accept report "$work/w.json" -o "$work/page.html"
whole
page 'd="M0 96.0L0 64.0L57.6 64.0L172.8 96.0L259.2 32.0H288.0V96.0z"'
same 'workers drawn' "$(grep -c 'class="a"' "$work/page.html")" 2
page 'The fullest has 1.25 times the mean'
page 'of a simulation those that run, so that'
page 'The first 2 of 9 workers'
page 'class="m5" d="M0 0h1v1h-1zM3 1h1v1h-1z"'
page 'class="m3" d="M1 0h1v1h-1zM3 0h1v1h-1z"'
page 'by 0.500 bits'
page '4 experts, by the worker that uses them most'
# Too many bins for the time, and lists of different lengths.
sed 's/"end_s": 5/"end_s": 4/' "$work/w.json" >"$work/v.json"
refuse 1 'v.json: load.end_s is not' report "$work/v.json" -o "$work/no.html"
replay r0.json 8 12.5
awk -v w="${watched/, 0, 2]]/]]}" '{ print } /"union-band/ { print w }' \
    "$work/r0.json" >"$work/v.json"
refuse 1 'v.json: policies[1].load.workers is not lists of one length' \
    report "$work/v.json" -o "$work/no.html"
[ ! -e "$work/no.html" ] || complain 'a page of a file that was refused'

# Rates of one simulation make lines; of another model they do not. Only a mix
# that turns over has thirds.
# sim FILE MODEL RATE P50: a simulation of one policy.
sim() {
    cat >"$work/$1" <<END
{"sim": "s.sim", "model": "$2", "machine": "mi300x", "workload": "task",
 "prefill": 2, "decode": 3, "ep": 1, "rate": $3, "mix_turns_over": $5,
 "policies": [{"policy": "eldr",
  "p50_tpot_ms": {"mean": $4, "half_width": null}, "phases": [
  {"p50_tpot_ms": 11.5, "p99_tpot_ms": 20, "distinct_experts": 30},
  {"p50_tpot_ms": 12.75, "p99_tpot_ms": 21, "distinct_experts": 31},
  {"p50_tpot_ms": 13.25, "p99_tpot_ms": 22, "distinct_experts": 32}]}]}
END
}
sim s1.json m 10 12.5 false
sim s2.json m 20 14.5 false
sim s3.json other 30 16.5 false
accept report "$work/s1.json" "$work/s2.json" "$work/s3.json" \
    -o "$work/page.html"
whole
page 'Median TPOT against load: m, task, 2P3D'
page 'requests that arrive per second'
lacks 'against load: other'
lacks 'of each third'
# 10 and 20 of 0 .. 20 arrivals, 12.5 and 14.5 of 0 .. 15 ms.
page 'd="M340.0 54.0L618.0 18.8"'
# Rates make a line whatever is measured of them, another tau does not.
for k in 1 2; do
    for tau in 0.1 0.2; do
        sed "s/\"ep\"/\"settings\": {\"routing.tau\": $tau, \\
            \"requests.measured\": $k, \"requests.rate\": ${k}0}, &/" \
            "$work/s$k.json" | tr '\n' ' ' >"$work/tau$tau-$k.json"
    done
done
accept report "$work/tau0.1-1.json" "$work/tau0.1-2.json" \
    -o "$work/page.html"
page 'd="M340.0 54.0L618.0 18.8"'
accept report "$work/tau0.1-1.json" "$work/tau0.2-2.json" \
    -o "$work/page.html"
lacks 'against load:'
accept report "$work/s1.json" "$work/tau0.2-2.json" -o "$work/page.html"
lacks 'against load:'
lacks 'workers lost'
lacks 'flatters'
sim s4.json m 10 12.5 true
sed -i 's/"phases"/"deaths": {"mean": 2.5}, "prefix_cached_percent": \
  {"mean": 37.5}, "copies_percent": {"mean": 4.25}, &/' "$work/s4.json"
accept report "$work/s4.json" -o "$work/page.html"
whole
page 'Median TPOT of the requests of each third'
page '>12.75</text>'
page '>13.25</text>'
page '<th>workers lost<small>&#160;</small></th>'
page '<td>2.5</td>'
page '<td>0.375</td>'
page 'a copy of itself in 4.2 % of the steps'

replay r1.json 8 12.5
replay r2.json 16 14.5
accept report "$work/r1.json" "$work/r2.json" -o "$work/page.html"
whole
page '<td>14.500 ± 0.125</td>'
page 'requests in flight per worker'
page 'the fit may have seen them'
page 'No file has times to the first token'
page 'No file has sums of each worker'
page 'No file knows how many distinct experts'
# A measured time of 10 is not better than modelled ones.
accept report "$work/r1.json" "$work/b.json" -o "$work/page.html"
whole
page '★ 11.500</td>'
lacks '★ 10.000'
page 'Runs are measured, replays and simulations are modelled'

# ---- runs without weights ----

summary plain.json jsq m 50 2
sed 's/"policy"/"modelled": "big on fast", "slowdown": 4, "policy"/' \
    "$work/plain.json" >"$work/slow.json"
sed 's/"slowdown": 4/"slowdown": 8/' "$work/slow.json" >"$work/slower.json"
accept report "$work/slow.json" "$work/slower.json" -o "$work/page.html"
page 'A run without weights takes the times of a cost model'
page 'slowed down by different factors'
page 'stands for big on fast; '
page 'times slower 8; '
accept report "$work/plain.json" -o "$work/page.html"
lacks 'without weights'

# Standard output, the same bytes each time.
accept report "$work/a.json" -o -
holds '</html>'
cp "$work/out" "$work/once"
accept report "$work/a.json" -o -
cmp -s "$work/out" "$work/once" || complain 'two pages differ'
accept report --help
holds 'REPORT.html'

# What is refused leaves the old page as it was.
echo old >"$work/page.html"
kept() {
    refuse "$@" -o "$work/page.html"
    same 'old page' "$(cat "$work/page.html")" old
}
refuse 2 'no output' report "$work/a.json"
kept 2 'no input' report
kept 1 "$work/none.json: cannot open" report "$work/a.json" "$work/none.json"
kept 1 "$work: cannot read" report "$work"
kept 1 'end of file' report /dev/zero
head -c 300 "$work/a.json" >"$work/half.json"
kept 1 "$work/half.json:" report "$work/half.json"
echo '[1, 2]' >"$work/array.json"
kept 1 'no summary of a run, no replay' report "$work/array.json"
echo '{"policies": []}' >"$work/empty.json"
kept 1 'list of policies is empty' report "$work/empty.json"
echo '{"policies": [{"name": "a"}]}' >"$work/empty.json"
kept 1 'policies[0].policy is not a text' report "$work/empty.json"
sed 's/"mean": 11.5/"mean": "x"/' "$work/r1.json" >"$work/text.json"
kept 1 'policies[1].tpot_p50_ms.mean' report "$work/text.json"
sed 's/"steps": 50, //' "$work/a.json" >"$work/lacks.json"
kept 1 'steps is not a number' report "$work/lacks.json"
refuse 1 'cannot write' report "$work/a.json" -o "$work"
refuse 1 'cannot create' report "$work/a.json" -o "$work/no/page.html"
refuse 2 'would overwrite the input' report "$work/a.json" -o "$work/a.json"
refuse 1 'No space left' report "$work/a.json" -o /dev/full
[ -c /dev/full ] || complain '/dev/full was replaced'

# A disk that fills up in the middle of the page.
(
    trap '' XFSZ
    ulimit -f 4
    kept 1 'File too large' report "$work/a.json"
)
[ -z "$(find "$work" -name '*.tmp.*')" ] || complain 'a temporary is left'
full report "$work/a.json" -o -
finish
