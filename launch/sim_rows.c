/* Sim rows: the table of keys of a simulation. */
#include "launch/sim.h"

const akin_config_row_t akin_sim_rows[] = {
    {"model", AKIN_CONFIG_STRING, "", "qwen3-30b-a3b", 0, 0, NULL,
     "Model whose sizes count: qwen3-30b-a3b, qwen3-235b-a22b, gpt-oss-20b, "
     "gpt-oss-120b or gemma-4-26b-a4b."},
    {"machine", AKIN_CONFIG_STRING, "", "mi300x", 0, 0, NULL,
     "Accelerator of every rank: mi300x or h200; or a file that `akin bench "
     "step --json` printed."},
    {"workload.kind", AKIN_CONFIG_STRING, "", "task", 0, 0, NULL,
     "Kinds of requests: task or language."},
    {"workload.seed", AKIN_CONFIG_INT, "", "1", 0, 9e15, NULL,
     "Seed of the model's routes, the same in all runs."},
    {"workload.prompt_tokens", AKIN_CONFIG_FLOAT, "tokens", "128", 1, 32767,
     NULL, "Mean length of prompts."},
    {"workload.output_tokens", AKIN_CONFIG_FLOAT, "tokens", "128", 1, 32767,
     NULL, "Mean length of outputs."},
    {"workload.prompt_spread", AKIN_CONFIG_FLOAT, "", "0.6", 0, 3, NULL,
     "Standard deviation of the logarithm of prompt lengths; 0: all alike."},
    {"workload.output_spread", AKIN_CONFIG_FLOAT, "", "0", 0, 3, NULL,
     "The same of outputs; 0: all have the mean length, as benchmarks that "
     "ignore the end of a text."},
    {"workload.shared_prefix_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 32766,
     NULL,
     "Tokens that all prompts of a domain begin with, as a system prompt, "
     "before their own."},
    {"workload.shares", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Shares of the domains, with commas, as \"0.5,0.5,0,0\"; empty: those of "
     "workload.kind. The fit learns from these."},
    {"workload.later_shares", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Shares that the mix goes to evenly in the second third of the measured "
     "requests; empty: it stays."},
    {"routes.requests", AKIN_CONFIG_INT, "requests", "2048", 1, 1000000, NULL,
     "Different requests at most; runs of more have them again and again. Each "
     "takes layers x top-k bytes per output token."},
    {"routes.trace", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Index of a trace whose requests, lengths and domains are used in place "
     "of generated ones; where --set names it, in place of those that the "
     "file's workload describes."},
    {"routes.prompt_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 32767, NULL,
     "First rows that stand in for the prompt of requests of the trace that "
     "know none; 0: there may be none."},
    {"routes.memory", AKIN_CONFIG_SIZE, "", "2GiB", 1, 1e15, NULL,
     "Memory that the requests may take."},
    {"requests.rate", AKIN_CONFIG_FLOAT, "requests per second", "0", 0, 1e6,
     NULL, "Arrivals per second, where they are Poisson."},
    {"requests.in_flight", AKIN_CONFIG_INT, "requests", "0", 0,
     AKIN_SIM_MAX_INSIDE, NULL,
     "Requests inside at any time: the end of one admits the next, as in a "
     "batch job. 0: they come by themselves."},
    {"requests.arrivals", AKIN_CONFIG_CHOICE, "", "poisson", 0, 0,
     "poisson|trace", "Whether they come by chance or as in routes.trace."},
    {"requests.total", AKIN_CONFIG_INT, "requests", "0", 0, 1e9, NULL,
     "Requests of a run, which ends when all have; those after "
     "requests.measured are the tail, which is not measured. 0: they come "
     "until the last measured one has ended."},
    {"requests.warmup", AKIN_CONFIG_INT, "requests", "500", 0, 1e8, NULL,
     "First requests, which are not measured."},
    {"requests.measured", AKIN_CONFIG_INT, "requests", "2000", 1, 1e8, NULL,
     "Requests after them, which are."},
    {"roles.prefill", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Prefill workers."},
    {"roles.decode", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Decode workers."},
    {"roles.ep", AKIN_CONFIG_INT, "ranks", "1", 1, 64, NULL,
     "Ranks per worker, prefill too: they share its experts, and everything "
     "else by heads."},
    {"ep.placement", AKIN_CONFIG_CHOICE, "", "activation", 0, 0,
     "linear|round-robin|eplb|activation-shared|activation",
     "Which ranks of a decode worker hold which experts."},
    {"ep.replicas", AKIN_CONFIG_INT, "experts", "0", 0, 65536, NULL,
     "Slots of every layer for second copies of experts."},
    {"prefill.chunk_tokens", AKIN_CONFIG_INT, "tokens", "8192", 1, 65536, NULL,
     "Prompt tokens of all requests in one prefill step."},
    {"prefill.cache_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 1e12, NULL,
     "Tokens of prompts that a prefill worker keeps; 0: none."},
    {"decode.max_batch", AKIN_CONFIG_INT, "requests", "256", 1, 65536, NULL,
     "Most requests of a decode worker at a time."},
    {"decode.kv_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 1e12, NULL,
     "Tokens whose KV a decode worker holds; a request has room for all of its "
     "tokens from the start. 0: no limit."},
    {"routing.policies", AKIN_CONFIG_STRING, "",
     "rr,random,jsq,p2c,eldr-static,eldr,union,union-band", 0, 0, NULL,
     "Policies to compare, with commas; changes are against the first."},
    {"routing.prefill", AKIN_CONFIG_CHOICE, "", "prefix-hash", 0, 0,
     "prefix-hash|least-loaded", "How prompts are given to prefill workers."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 2, NULL,
     "Width of the locality band, in cosine."},
    {"routing.pull", AKIN_CONFIG_FLOAT, "", "0.16", 0, 100, NULL,
     "Pull of the nearest centroids in union-pull."},
    {"routing.signature_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 32767, NULL,
     "Tokens of a prompt that its signature counts; 0: all. Fewer make the "
     "simulation faster and the signature noisier."},
    {"fit.file", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "File of akin fit to route with, from requests of its own, with its "
     "settings of the policies unless they are set here; empty: a fit is made "
     "as the next keys say."},
    {"fit.requests", AKIN_CONFIG_INT, "requests", "400", 1, 100000, NULL,
     "Other requests that the fit learns from before the first run."},
    {"fit.max_tokens", AKIN_CONFIG_INT, "tokens", "256", 0, 32767, NULL,
     "Tokens of a prompt and of an output that it counts; 0: all."},
    {"fit.variant", AKIN_CONFIG_CHOICE, "", "count_idf", 0, 0,
     "count|count_idf", "Signatures of plain or of weighted counts."},
    {"fit.clusters", AKIN_CONFIG_CHOICE, "", "balanced", 0, 0, "balanced|plain",
     "Clusters of equal size or of any; refits are balanced all the same."},
    {"faults.at", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Workers that die, as \"decode:3:60, prefill:0:90.5\": role, number from "
     "0, seconds."},
    {"faults.mtbf", AKIN_CONFIG_TIME, "", "0s", 0, 9e18, NULL,
     "Mean time until a worker dies by chance, each on its own; 0: none "
     "does."},
    {"faults.down", AKIN_CONFIG_TIME, "", "0s", 0, 9e18, NULL,
     "Time until it is back, empty; 0: it never is."},
    {"faults.detect", AKIN_CONFIG_TIME, "", "2s", 0, 9e18, NULL,
     "Time until the router knows that it is dead."},
    {"seeds", AKIN_CONFIG_INT, "runs", "3", 1, AKIN_SIM_MAX_SEEDS, NULL,
     "Runs of every policy, each with another order of the same requests, "
     "other "
     "arrivals and other deaths by chance."},
    {"seed", AKIN_CONFIG_INT, "", "1", 0, 1e9, NULL,
     "Of the first run, and of the fit; the next ones have the numbers after "
     "it. workload.seed gives other requests."},
};

const size_t akin_sim_n_rows = sizeof(akin_sim_rows) / sizeof(akin_sim_rows[0]);
