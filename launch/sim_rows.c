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
    {"workload.shares", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Shares of the domains, with commas, as \"0.5,0.5,0,0\"; empty: those of "
     "workload.kind. The fit learns from these."},
    {"workload.later_shares", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Shares that the mix goes to evenly in the second third of the measured "
     "requests; empty: it stays."},
    {"requests.rate", AKIN_CONFIG_FLOAT, "requests per second", NULL, 1e-4, 1e6,
     NULL, "Arrivals per second; they are Poisson."},
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
     "Most tokens of a prompt in one prefill step."},
    {"decode.max_batch", AKIN_CONFIG_INT, "requests", "256", 1, 65536, NULL,
     "Most requests of a decode worker at a time."},
    {"decode.kv_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 1e12, NULL,
     "Tokens whose KV a decode worker holds; a request has room for all of its "
     "tokens from the start. 0: no limit."},
    {"routing.policies", AKIN_CONFIG_STRING, "",
     "rr,random,jsq,p2c,eldr-static,eldr,union,union-band", 0, 0, NULL,
     "Policies to compare, with commas; changes are against the first."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 2, NULL,
     "Width of the locality band, in cosine."},
    {"routing.pull", AKIN_CONFIG_FLOAT, "", "0.16", 0, 100, NULL,
     "Pull of the nearest centroids in union-pull."},
    {"routing.signature_tokens", AKIN_CONFIG_INT, "tokens", "0", 0, 32767, NULL,
     "Tokens of a prompt that its signature counts; 0: all. Fewer make the "
     "simulation faster and the signature noisier."},
    {"fit.requests", AKIN_CONFIG_INT, "requests", "400", 1, 100000, NULL,
     "Other requests that the fit learns from before the first run."},
    {"fit.max_tokens", AKIN_CONFIG_INT, "tokens", "256", 0, 32767, NULL,
     "Tokens of a prompt and of an output that it counts; 0: all."},
    {"fit.variant", AKIN_CONFIG_CHOICE, "", "count_idf", 0, 0,
     "count|count_idf", "Signatures of plain or of weighted counts."},
    {"seeds", AKIN_CONFIG_INT, "runs", "3", 1, AKIN_SIM_MAX_SEEDS, NULL,
     "Runs of every policy, with other requests and arrivals each."},
    {"seed", AKIN_CONFIG_INT, "", "1", 0, 1e9, NULL, "Of the first run."},
};

const size_t akin_sim_n_rows = sizeof(akin_sim_rows) / sizeof(akin_sim_rows[0]);
