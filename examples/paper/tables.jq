# Reads the cells of run.sh, and in $published the figures of published.json;
# prints Markdown: the tables that have a cell, with a dash where none has the
# figure.

# ---- numbers ----

def mean: add / length;

# Of the values of some seeds: half the width of a 95 % interval of their mean,
# by Student's t.
def half_width:
    length as $n | mean as $mean
    | if $n < 2 then null
      else ([12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
            [$n - 2] // 1.96)
          * ((map(. - $mean | . * .) | add) / ($n - 1) / $n | sqrt)
      end;

# ---- text ----

def fixed($digits):
    pow(10; $digits) as $scale
    | (fabs * $scale | round) as $n
    | (if . < 0 and $n > 0 then "-" else "" end)
      + ($n / $scale | floor | tostring)
      + if $digits == 0 then ""
        else "." + ("000" + ($n % $scale | tostring))[-$digits:] end;

def signed: (if fixed(1) | test("^-|^0[.]0") then "" else "+" end) + fixed(1);

def with_interval(show):
    if . == null then null
    else (mean | show)
        + (half_width | if . == null then "" else " ± " + fixed(1) end)
    end;
def ms: with_interval(fixed(2));
def experts: with_interval(fixed(1));
def change: with_interval(signed);

def row: "| " + (map(if . == null then "–" else tostring end) | join(" | "))
    + " |";
def table($head): ($head | row), ($head | map("---") | row), (.[] | row), "";

# ---- the cells ----

(reduce inputs as $cell ({}; .[$cell.cell] = $cell)) as $cells
| $published[0] as $theirs
| ["qwen3-30b-a3b", "gpt-oss-120b", "gemma-4-26b-a4b"] as $models
| {"qwen3-30b-a3b": "Qwen3-30B-A3B", "gpt-oss-120b": "GPT-OSS-120B",
   "gemma-4-26b-a4b": "Gemma-4-26B-A4B"} as $title
| ["task", "language"] as $kinds
| ["random", "rr", "jsq", "p2c"] as $baselines
| ["eldr", "union", "union-band", "union-pull"] as $routed
| "p50_tpot_ms" as $p50 | "p99_tpot_ms" as $p99

# The values of the seeds, or null.
| def values($name; $policy; $figure):
    first($cells[$name].printed.policies[]? | select(.policy == $policy)
          | .[$figure].values) // null;

  # The policy that is best here of those that know nothing of experts.
  def best($name; $figure):
    [$baselines[] | {policy: ., values: values($name; .; $figure)}
     | select(.values != null)]
    | if . == [] then null else min_by(.values | mean) end;

  # Changes in percent, seed by seed.
  def against($base):
    if . == null or $base == null then null
    else [., $base] | transpose | map(100 * (.[0] / .[1] - 1)) end;
  def to_best($name; $policy; $figure):
    values($name; $policy; $figure) | against(best($name; $figure).values);
  def to_policy($name; $policy; $base; $figure):
    values($name; $policy; $figure) | against(values($name; $base; $figure));

  # The mean of several cells, seed by seed, so that an interval can follow.
  def over(cells):
    [cells | select(. != null)]
    | if . == [] then null else transpose | map(mean) end;

  # The cells of a model and a workload.
  def rates($model; $kind): $theirs.rates[] | "rate-\($model)-\($kind)-\(.)";
  def six_heads:
    [$kinds[] as $kind | $models[] as $model | "\($title[$model]), \($kind)"];

  def section($of; $heading; $text; tables):
    select(any($cells | keys[]; startswith($of)))
    | "## \($heading)", "", $text, "", tables;

# ---- the tables ----

  def best_table($figure):
    [["ELDR, published"]
     + [$kinds[] as $kind | $models[] as $model
        | $theirs.best_change_percent[$figure][$kind][$model]],
     (("eldr-static", "domain", $routed[]) as $policy
      | ["`\($policy)`"]
        + [$kinds[] as $kind | $models[] as $model
           | over(rates($model; $kind) | to_best(.; $policy; $figure))
           | change])]
    | table(["change, %"] + six_heads);

  def rate_table:
    [$kinds[] as $kind | $models[] as $model
     | range($theirs.rates | length) as $i
     | "rate-\($model)-\($kind)-\($theirs.rates[$i])" as $name
     | select($cells[$name] != null)
     | ($theirs.p50_tpot_ms[$kind][$model]
        | if . == null then [null, null, null]
          else [.rr[$i], .eldr[$i]]
              | ((.[1] / .[0] - 1) * 100) as $change
              | map(fixed(2)) + [$change | signed] end) as $their
     | [$title[$model], $kind, $theirs.rates[$i],
        $their[0], (values($name; "rr"; $p50) | ms),
        $their[1], (values($name; "eldr"; $p50) | ms),
        $their[2], (to_policy($name; "eldr"; "rr"; $p50) | change),
        best($name; $p50).policy]
       + [$routed[] as $policy | to_best($name; $policy; $p50) | change]]
    | table(["model", "workload", "requests/s", "rr, published", "rr",
             "eldr, published", "eldr", "change, published", "change", "best"]
            + ($routed | map("`\(.)` to best")));

  def domain_table:
    [["ELDR, published"]
     + [$kinds[] as $kind | $models[] | $theirs.domain_change_percent[$kind]],
     ($routed[] as $policy
      | ["`\($policy)`"]
        + [$kinds[] as $kind | $models[] as $model
           | over(rates($model; $kind)
                  | to_policy(.; $policy; "domain"; $p50))
           | change])]
    | table(["change, %"] + six_heads);

  def pool_table:
    [("8", "16", "24") as $n | ($p50, $p99) as $figure
     | ["8P\($n)D", ($figure | ascii_upcase[0:3]),
        $theirs.pool_change_percent[$n][$figure]]
       + [$routed[] as $policy
          | over($theirs.rates[]
                 | if $n == "16" then "rate-qwen3-30b-a3b-language-\(.)"
                   else "pool-\($n)-\(.)" end
                 | to_policy(.; $policy; "rr"; $figure))
          | change]]
    | table(["workers", "TPOT", "ELDR, published"]
            + ($routed | map("`\(.)`")));

  def tau_table:
    ["0", "0.1", "0.2", "0.3"] as $taus
    | [$models[] as $model
       | (["ELDR, published"]
          + [$taus[] | $theirs.tau_p50_tpot_ms[$model][.] | fixed(2)]),
         (("eldr", "union-band") as $policy
          | ["`\($policy)`"]
            + [$taus[]
               | if . == "0.1" then "rate-\($model)-task-60"
                 else "tau-\($model)-\(.)" end
               | values(.; $policy; $p50) | ms])
       | [$title[$model]] + .]
    | table(["model", "policy"] + ($taus | map("tau \(.)")));

  def variant_table:
    [$kinds[] as $kind | $models[] as $model
     | ("count_idf", "count") as $variant
     | (if $variant == "count" then "variant-\($model)-\($kind)"
        else "rate-\($model)-\($kind)-60" end) as $name
     | [$title[$model], $kind, $variant,
        ($cells[$name].printed.rho | if . == null then . else fixed(2) end),
        (to_policy($name; "eldr"; "rr"; $p50) | change),
        (to_policy($name; "union-band"; "rr"; $p50) | change)]]
    | table(["model", "workload", "variant", "rho", "`eldr`", "`union-band`"]);

  def clusters_table:
    [$models[] as $model | ("balanced", "plain") as $clusters
     | (if $clusters == "plain" then "plain-\($model)"
        else "rate-\($model)-task-60" end) as $name
     | ($theirs.clusters_p50_tpot_ms[$model][$clusters]?
        | if . == null then . else fixed(2) end) as $their
     | [$title[$model], $clusters, $their]
       + [("eldr-static", "eldr", "union-band") as $policy
          | ($p50, $p99) as $figure | values($name; $policy; $figure) | ms]]
    | table(["model", "clusters", "ELDR, published", "`eldr-static`", "P99",
             "`eldr`", "P99", "`union-band`", "P99"]);

  def cache_table:
    [("0", "1000000") as $tokens | "cache-\($tokens)" as $name
     | select($cells[$name] != null)
     | [(if $tokens == "0" then "off" else "on" end),
        (values($name; "rr"; "p50_ttft_ms") | ms),
        $theirs.cache_change_percent, best($name; $p50).policy]
       + [$routed[] as $policy | to_best($name; $policy; $p50) | change]]
    | table(["cache", "TTFT P50, ms", "ELDR, published", "best"]
            + ($routed | map("`\(.)` to best")));

  def experts_table:
    [["ELDR, published", null, $theirs.active_experts_change_percent],
     (("rr", "domain", $routed[]) as $policy
      | ["`\($policy)`",
         (values("rate-qwen3-30b-a3b-task-60"; $policy; "distinct_experts")
          | experts),
         (over(rates("qwen3-30b-a3b"; "task")
               | to_policy(.; $policy; "rr"; "distinct_experts"))
          | change)])]
    | table(["policy", "at 60 requests/s", "change, all rates, %"]);

  def ep_table:
    ["24", "40", "56"] as $rates
    | [["any", "ELDR, published", $theirs.ep_change_percent[$p50],
        $theirs.ep_change_percent[$p99], null, null],
       (("linear", "activation") as $place | ("rr", $routed[]) as $policy
        | [$place, "`\($policy)`"]
          + [($p50, $p99) as $figure
             | over($rates[] | "ep-\($place)-\(.)"
                    | to_policy(.; $policy; "rr"; $figure))
             | change]
          + [(over($rates[] as $rate
                   | values("ep-\($place)-\($rate)"; $policy; $p50)
                   | against(values("ep-linear-\($rate)"; "rr"; $p50)))
              | change),
             (values("ep-\($place)-40"; $policy; "busiest_rank_experts")
              | experts)])]
    | table(["placement", "policy", "P50", "P99",
             "P50 to rr with linear", "experts of the busiest rank"]);

  def drift_table:
    [$cells.drift.printed.policies[]
     | ["`\(.policy)`"]
       + [.phases[] | .p50_tpot_ms_values | ms]
       + [.phases[] | .distinct_experts | fixed(1)]]
    | table(["policy", "before", "during", "after", "experts before",
             "during", "after"]);

  # What --cost said of a policy: its event, its decision, its time.
  def scale_table:
    [("64", "256", "1024", "4096") as $n | $cells["scale-\($n)"]
     | select(. != null) | .said as $said | .printed.policies[]
     | .policy as $policy
     | [$n, "`\($policy)`", .arrived, .events, (.[$p50].mean | fixed(2))]
       + (first($said | split("\n")[] | select(startswith("\($policy): "))
                | [capture("events of (?<event>[0-9.]+) us, [0-9]+ decisions of (?<decision>[0-9.]+) us.*; (?<all>[0-9.]+) s")
                   | .event, .decision, .all]) // [])]
    | table(["decode workers", "policy", "requests", "events", "TPOT P50, ms",
             "an event, us", "a decision, us", "a run, s"]);

  def trace_table:
    [$kinds[] as $kind | $cells["trace-\($kind)"] | select(. != null)
     | .printed.prefill_decode_correlation as $r
     | [$kind, $theirs.prefill_decode_correlation,
        "\($r.mean | fixed(2)) (\($r.layer_min | fixed(2)) to "
        + "\($r.layer_max | fixed(2)))",
        $theirs.same_domain_change_percent[$kind]]
       + [(8, 16, 32, 64) as $batch
          | first(.printed.domain_locality[]
                  | select(.batch == $batch and .same_domain != null)
                  | 100 * (.same_domain / .any_domain - 1) | signed) // null]]
    | table(["workload", "correlation, published", "correlation",
             "one domain, published", "batch of 8", "16", "32", "64"]);

  def route_table:
    [["16", "ELDR, published", $theirs.routing_us, null, null],
     ($cells.decision.printed[]
      | [.workers, "`\(.policy)`",
         ((.seconds, .p99_seconds, .decide_seconds) * 1e6 | fixed(1))])]
    | table(["decode workers", "policy", "choice, us", "P99",
             "with what is noted, us"]);

  section("rate-"; "TPOT against the best other policy";
    "P50: change in % against the best of random, rr, jsq and p2c at each rate, mean over the rates.";
    best_table($p50), "P99, likewise:", "", best_table($p99)),
  section("rate-"; "TPOT by rate";
    "P50 in ms; changes in %, of eldr against rr, then against the best of random, rr, jsq and p2c.";
    rate_table),
  section("rate-"; "Oracle domain label";
    "TPOT P50 against `domain`, which is told every request's domain: change in %, mean over the rates.";
    domain_table),
  section("pool-"; "Pool size";
    "Qwen3-30B-A3B, language: change of TPOT against rr in %, mean over the rates.";
    pool_table),
  section("tau-"; "Width of the locality band";
    "TPOT P50 in ms, task, 60 requests/s.";
    tau_table),
  section("variant-"; "Signature variant";
    "60 requests/s: quality of the signatures, and change of TPOT P50 against rr in %. Published are rho \($theirs.signature_quality.count_idf) for count_idf and \($theirs.signature_quality.binary) for binary signatures, means over six cells.";
    variant_table),
  section("plain-"; "Plain clusters";
    "Task, 60 requests/s: TPOT P50 in ms, and P99.";
    clusters_table),
  section("cache-"; "Prefix cache";
    "GPT-OSS-120B, task, 100 requests/s, prompts of a domain with 256 tokens in common: change of TPOT P50 in % against the best of random, rr, jsq and p2c.";
    cache_table),
  section("rate-qwen3-30b-a3b-task"; "Active experts per step";
    "Qwen3-30B-A3B, task: per layer, and change against rr.";
    experts_table),
  section("ep-"; "Experts split over four ranks";
    "Qwen3-235B-A22B, 2P8D, EP 4, language: change of TPOT in % against rr with the same placement, then with the linear one, mean over 24, 40 and 56 requests/s; experts per layer of the busiest rank at 40 requests/s.";
    ep_table),
  section("drift"; "A mix that turns over";
    "Qwen3-30B-A3B, task, 60 requests/s: TPOT P50 in ms before the mix of domains turns, meanwhile, and after; experts per layer.";
    drift_table),
  section("scale-"; "Scale";
    "What the simulator itself costs, on one core; an event's time has its part of the decisions'.";
    scale_table),
  section("trace-"; "Routes that are made";
    "Correlation of a request's rates in prompt and decode; change in % of the experts that batches of one domain touch against mixed ones.";
    trace_table),
  section("decision"; "Time of a decision";
    "Medians and P99 on one core, 48 layers of 128 experts.";
    route_table)
