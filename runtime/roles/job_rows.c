/* Job rows: the table of keys. */
#include "roles/job.h"

const akin_config_row_t akin_job_rows[] = {
    {"model.path", AKIN_CONFIG_STRING, "", NULL, 0, 0, NULL,
     "Model directory: config.json, tokenizer.json and the weights."},
    {"model.name", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Name that answers carry; empty: the last part of model.path."},
    {"engine.kind", AKIN_CONFIG_CHOICE, "", "cpu", 0, 0, "cpu|modelled",
     "Engine that runs the model steps. modelled: none are computed; they take "
     "the time that they would on another machine, with a trace's experts."},
    {"engine.kernel", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|avx512|avx2|portable",
     "Kernel path; auto takes the best one that every rank has."},
    {"engine.threads", AKIN_CONFIG_INT, "threads", "0", 0, 4096, NULL,
     "Threads of a rank's engine; 0 shares a host's cores among its ranks."},
    {"modelled.model", AKIN_CONFIG_STRING, "", "qwen3-30b-a3b", 0, 0, NULL,
     "Model that the modelled engine stands for: qwen3-30b-a3b, "
     "qwen3-235b-a22b, gpt-oss-20b, gpt-oss-120b or gemma-4-26b-a4b. "
     "model.path gives the tokenizer."},
    {"modelled.machine", AKIN_CONFIG_STRING, "", "mi300x", 0, 0, NULL,
     "Accelerator of every rank that it stands for: mi300x or h200; or a file "
     "that akin bench step --json printed."},
    {"modelled.trace", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Trace of the model; the first 8 tokens of a prompt pick a record of it. "
     "akin trace make writes traces, akin trace prompts the prompts that pick "
     "one record after another."},
    {"modelled.kv_scale", AKIN_CONFIG_INT, "times", "64", 1, 65536, NULL,
     "A token's KV has so many times fewer bytes than the model's; they are "
     "written, moved and checked."},
    {"modelled.slowdown", AKIN_CONFIG_FLOAT, "times", "1", 0.001, 100, NULL,
     "Steps take so many times longer than on the machine: for more ranks than "
     "this one has cores for."},
    {"roles.prefill", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Prefill workers."},
    {"roles.decode", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Decode workers."},
    {"roles.ep", AKIN_CONFIG_INT, "ranks", "1", 1, 64, NULL,
     "Expert-parallel ranks per worker: they share its experts."},
    {"roles.prefill_ep", AKIN_CONFIG_INT, "ranks", "0", 0, 64, NULL,
     "Expert-parallel ranks per prefill worker; 0: as many as roles.ep."},
    {"roles.spare", AKIN_CONFIG_INT, "workers", "0", 0, 4096, NULL,
     "Workers that wait to take a lost one's place; with recovery.mode = "
     "\"spare\"."},
    {"kv.slab", AKIN_CONFIG_SIZE, "bytes", "256MiB", 1048576.0,
     17592186044416.0, NULL, "Memory for KV blocks on every worker rank."},
    {"kv.block_tokens", AKIN_CONFIG_INT, "tokens", "16", 8, 64, NULL,
     "Tokens per KV block: 8, 16, 32 or 64."},
    {"kv.prefix_cache", AKIN_CONFIG_BOOL, "", "true", 0, 0, NULL,
     "Keep full blocks for later prompts that begin alike."},
    {"kv.lease", AKIN_CONFIG_TIME, "", "30s", 1e6, 3.6e12, NULL,
     "How long a prefill worker keeps blocks that nobody released."},
    {"prefill.chunk_tokens", AKIN_CONFIG_INT, "tokens", "256", 1, 65536, NULL,
     "Prompt tokens of all requests in one prefill step."},
    {"decode.max_batch", AKIN_CONFIG_INT, "requests", "64", 1, 4096, NULL,
     "Most requests that a decode rank runs at a time."},
    {"ep.exchange", AKIN_CONFIG_CHOICE, "", "ucx", 0, 0, "ucx|mpi",
     "How the ranks of a worker swap rows. mpi: by collectives of the MPI "
     "library, which stays up, so that a rank's death ends the job."},
    {"ep.placement", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|linear|round-robin|eplb|activation",
     "Which ranks of a worker hold which experts; auto: the maps of the fit if "
     "it has them for such workers, else activation with a fit that has decode "
     "rates (pbar), linear without. eplb and activation need "
     "such a fit. activation takes half of decode.max_batch for the usual "
     "batch of a step."},
    {"ep.replicas", AKIN_CONFIG_INT, "experts", "0", 0, 65536, NULL,
     "Slots of every layer for second copies of experts, shared among a "
     "worker's ranks."},
    {"ep.timeout", AKIN_CONFIG_TIME, "", "10s", 1e8, 3.6e12, NULL,
     "How long a worker's ranks wait for one of them before they give up."},
    {"ep.replace", AKIN_CONFIG_CHOICE, "", "off", 0, 0, "off|dry-run|on",
     "Place a layer of a decode worker anew, by the experts that its tokens "
     "chose of late, when that pays; dry-run counts and logs what it would do. "
     "Answers stay the same."},
    {"ep.replace_every", AKIN_CONFIG_INT, "steps", "1000", 2, 1e9, NULL,
     "Steps of a decode worker after which ep.replace looks for a change of "
     "one layer."},
    {"ep.replace_horizon", AKIN_CONFIG_TIME, "", "60s", 1e6, 8.64e13, NULL,
     "Time in which a change has to save more than moving the weights takes."},
    {"ep.replace_bandwidth", AKIN_CONFIG_SIZE, "bytes per second", "2GiB",
     1048576.0, 17592186044416.0, NULL,
     "How fast a decode worker takes the weights of experts."},
    {"ep.replace_force", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL,
     "Change a layer every time, paying or not, by one kind of placement after "
     "another: for tests."},
    {"router.max_in_flight", AKIN_CONFIG_INT, "requests", "1024", 1, 1048576,
     NULL, "Most requests inside the job; more wait in the input."},
    {"router.request_timeout", AKIN_CONFIG_TIME, "", "10min", 1e6, 8.64e13,
     NULL, "A request that takes longer from its prefill on fails."},
    {"router.grace", AKIN_CONFIG_TIME, "", "10s", 0, 3.6e12, NULL,
     "How long running requests may go on after SIGINT or SIGTERM."},
    {"router.retries", AKIN_CONFIG_INT, "times", "8", 0, 1000, NULL,
     "How often a request may begin again, elsewhere, before it fails."},
    {"router.socket", AKIN_CONFIG_STRING, "", "auto", 0, 0, NULL,
     "UNIX socket for akin ctl; auto: one in the user's runtime folder; empty: "
     "none."},
    {"net.heartbeat", AKIN_CONFIG_TIME, "", "500ms", 1e6, 6e10, NULL,
     "How often the router and a worker's rank show each other that they "
     "live."},
    {"net.heartbeat_timeout", AKIN_CONFIG_TIME, "", "2s", 1e7, 3.6e12, NULL,
     "A rank that is silent for longer is lost; its workers bear with the "
     "router for ten times as long."},
    {"recovery.mode", AKIN_CONFIG_CHOICE, "", "respawn", 0, 0,
     "respawn|spare|shrink",
     "What follows the loss of a worker. respawn: its ranks are started anew "
     "and take its place. spare: one of roles.spare takes its place, and the "
     "ranks that are started anew become spares. shrink: the job goes on with "
     "fewer."},
    {"recovery.max_respawns", AKIN_CONFIG_INT, "times", "5", 0, 1000000, NULL,
     "How often a rank is started anew within recovery.window."},
    {"recovery.window", AKIN_CONFIG_TIME, "", "10min", 1e6, 8.64e13, NULL,
     "Time in which recovery.max_respawns counts."},
    {"recovery.timeout", AKIN_CONFIG_TIME, "", "2min", 0, 8.64e13, NULL,
     "How long the job waits for a new worker where none of a role is left."},
    {"recovery.start_timeout", AKIN_CONFIG_TIME, "", "10min", 1e9, 8.64e13,
     NULL, "How long a rank that is started anew may take to be ready."},
    {"net.transfer_timeout", AKIN_CONFIG_TIME, "", "10s", 1e6, 3.6e12, NULL,
     "A KV transfer that takes longer is given up; the prompt is recomputed."},
    {"routing.prefill", AKIN_CONFIG_CHOICE, "", "prefix-hash", 0, 0,
     "prefix-hash|least-loaded", "How prompts are given to prefill workers."},
    {"routing.decode", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|random|rr|jsq|p2c|domain|eldr-static|eldr|union|union-band|"
     "union-pull",
     "How requests are given to decode workers; auto: union-pull with a fit, "
     "union without. domain, eldr-static, eldr, union-band and union-pull need "
     "a fit."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 2, NULL,
     "Width of the locality band, in cosine; unless set, the fit's own if it "
     "has one."},
    {"routing.pull", AKIN_CONFIG_FLOAT, "", "0.16", 0, 100, NULL,
     "Pull of the nearest centroids in union-pull: what a cosine of 1 is "
     "worth, "
     "in steps that activate every expert; unless set, the fit's own if it has "
     "one."},
    {"routing.fit", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "File that akin fit wrote for this model and number of decode workers; "
     "empty: none."},
    {"routing.seed", AKIN_CONFIG_INT, "", "0", 0, 9.007199254740992e15, NULL,
     "Seed of random choices of the policies."},
    {"cluster.nodes", AKIN_CONFIG_INT, "nodes", "1", 1, 65536, NULL,
     "Nodes of the job, for akin plan."},
    {"cluster.gpus", AKIN_CONFIG_INT, "GPUs", "0", 0, 256, NULL,
     "GPUs of a node that the job gets, one for each rank of a worker; 0: "
     "ranks "
     "get cores alone."},
    {"cluster.topology", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "hwloc XML files of the nodes with commas between them, the last one for "
     "all that follow; empty: nodes are like this machine."},
    {"cluster.hosts", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Names of the nodes with commas between them; empty: those that the "
     "launcher has."},
    {"launch.oversubscribe", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL,
     "Let ranks share cores where akin plan has too few."},
    {"launch.time_limit", AKIN_CONFIG_TIME, "", "60min", 6e10, 8.64e15, NULL,
     "Time limit of the batch job that akin plan writes for Slurm."},
    {"launch.stop_before", AKIN_CONFIG_TIME, "", "2min", 1e9, 3.6e12, NULL,
     "How long before the time limit the job is told to stop; what is left is "
     "done after a requeue."},
    {"launch.require_rdma", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL,
     "Refuse to start where KV would go over tcp."},
    {"launch.probe", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL,
     "Measure the bandwidth of every pair of prefill and decode ranks at "
     "start."},
};

const size_t akin_job_n_rows = sizeof(akin_job_rows) / sizeof(akin_job_rows[0]);
