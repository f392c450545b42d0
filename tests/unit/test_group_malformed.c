/* Group, when it goes wrong: what is malformed or missing ends the group with a
 * clear error, and nothing else. */
#include "ep/group_state.h"

#include "local_group.h"
#include "runner.h"

#include <string.h>

#define HIDDEN 6u
#define INTERMEDIATE 5u
#define EXPERTS 12u
#define TOP_K 2u
#define MAX_ROWS 3u
#define SHORT_NS (300 * AKIN_NS_PER_MS)
#define TAMPER_BYTES 4096u

/* Spoils one message that comes from rank 1. */
typedef struct tamper {
    akin_ep_exchange_t base;
    akin_ep_exchange_t *inner;
    int kind; /* of the message */
    void (*spoil)(unsigned char *message, size_t *bytes);
    _Alignas(64) unsigned char copy[TAMPER_BYTES];
} tamper_t;

static akin_status_t tamper_swap(akin_ep_exchange_t *exchange,
                                 const akin_ep_piece_t *out,
                                 akin_ep_piece_t *in, int64_t deadline_ns)
{
    tamper_t *t = (tamper_t *)exchange;
    akini_ep_head_t head;
    akin_status_t status = akin_ep_swap(t->inner, out, in, deadline_ns);
    exchange->culprit = t->inner->culprit;
    if (status != AKIN_OK)
        return status;
    memcpy(&head, in[1].data, sizeof(head));
    if (head.kind != t->kind)
        return AKIN_OK;
    memcpy(t->copy, in[1].data, in[1].bytes);
    t->spoil(t->copy, &in[1].bytes);
    in[1].data = t->copy;
    return AKIN_OK;
}

static akini_ep_head_t *head_of(unsigned char *message)
{
    void *head = message;
    return head;
}

static akini_ep_wish_t *wish_of(unsigned char *message)
{
    void *wish = message + sizeof(akini_ep_head_t);
    return wish;
}

static void cut_head(unsigned char *m, size_t *bytes)
{
    (void)m;
    *bytes = sizeof(akini_ep_head_t) - 1;
}

static void no_bytes(unsigned char *m, size_t *bytes)
{
    (void)m;
    *bytes = 0;
}

static void wrong_magic(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->magic ^= 1;
}

static void wrong_version(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->version++;
}

static void wrong_kind(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->kind = (uint16_t)(head_of(m)->kind % 3 + 1);
}

static void wrong_layer(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->layer++;
}

static void wrong_hidden(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->hidden--;
}

static void wrong_epoch(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->epoch += UINT64_C(1) << 40;
}

static void too_many_rows(unsigned char *m, size_t *bytes)
{
    /* The length fits the number, which is beyond the bound. */
    *bytes += (MAX_ROWS + 1 - head_of(m)->n_rows) * HIDDEN * sizeof(float);
    head_of(m)->n_rows = MAX_ROWS + 1;
}

static void huge_rows(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->n_rows = UINT32_MAX;
}

static void too_many_pairs(unsigned char *m, size_t *bytes)
{
    uint32_t n = head_of(m)->n_rows * TOP_K + 1;
    *bytes += akini_ep_dispatch_vectors(n) -
              akini_ep_dispatch_vectors(head_of(m)->n_pairs);
    head_of(m)->n_pairs = n;
}

static void huge_pairs(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    head_of(m)->n_pairs = UINT32_MAX;
}

static void one_byte_less(unsigned char *m, size_t *bytes)
{
    (void)m;
    --*bytes;
}

static void one_byte_more(unsigned char *m, size_t *bytes)
{
    (void)m;
    ++*bytes;
}

static void row_beyond(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    wish_of(m)[0].row = head_of(m)->n_rows;
}

static void expert_beyond(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    wish_of(m)[0].expert = EXPERTS;
}

static void expert_elsewhere(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    wish_of(m)[0].expert = EXPERTS - 1; /* on rank 1 alone */
}

static void fewer_vectors(unsigned char *m, size_t *bytes)
{
    head_of(m)->n_pairs--;
    *bytes -= HIDDEN * sizeof(float);
}

static void unknown_expert_active(unsigned char *m, size_t *bytes)
{
    (void)bytes;
    m[sizeof(akini_ep_head_t) + EXPERTS / 8] |= 1 << EXPERTS % 8;
}

typedef struct rank_run {
    akin_ep_group_t *group;
    uint32_t rank;
    akin_status_t first, second;
    char text[256];
} rank_run_t;

static akin_expert_t experts[EXPERTS];
static unsigned char weights[HIDDEN * INTERMEDIATE * 4];

static void *run_rank(void *arg)
{
    rank_run_t *r = arg;
    akin_error_t err = {{0}};
    const akin_expert_step_params_t step = {
        .kernels = akin_kernels_of(AKIN_KERNEL_PORTABLE),
        .hidden = HIDDEN,
        .intermediate = INTERMEDIATE,
        .n_experts = EXPERTS,
        .top_k = TOP_K,
        .max_rows = MAX_ROWS,
    };
    static const float x[2 * HIDDEN] = {1};
    static const uint16_t routes[2 * TOP_K] = {0, EXPERTS - 1, 1, 7};
    static const float gate[2 * TOP_K] = {0.5f, 0.5f, 0.5f, 0.5f};
    float y[2 * HIDDEN] = {0};
    const akin_expert_batch_t batch = {.experts = experts,
                                       .x = x,
                                       .routes = routes,
                                       .weights = gate,
                                       .n_rows = 2,
                                       .y = y};
    akin_team_t *team = akin_team_create();
    local_group_need(akin_ep_group_prepare(r->group, &step, &err), &err);
    (void)akin_ep_group_run(r->group, team, 0, 0, &batch, &r->first);
    int64_t begin_ns = akin_clock_now_ns();
    (void)akin_ep_group_run(r->group, team, 0, 1, &batch, &r->second);
    /* A group that is no more waits for nobody. */
    if (r->first != AKIN_OK && akin_clock_now_ns() - begin_ns > SHORT_NS)
        r->second = AKIN_ERR_INTERNAL;
    const char *text = akin_ep_group_error(r->group);
    (void)snprintf(r->text, sizeof(r->text), "%s", text != NULL ? text : "");
    akin_team_destroy(team);
    return NULL;
}

static void make_placement(uint32_t n_replicas, akin_placement_t *placement)
{
    akin_error_t err = {{0}};
    const akin_placement_params_t params = {.kind = AKIN_PLACEMENT_LINEAR,
                                            .n_layers = 2,
                                            .n_experts = EXPERTS,
                                            .n_ranks = 2,
                                            .n_replicas = n_replicas};
    local_group_need(akin_placement_make(&params, placement, &err), &err);
    for (uint32_t e = 0; e < EXPERTS; e++)
        experts[e] = (akin_expert_t){
            .gate = {weights, AKIN_DTYPE_F32, INTERMEDIATE, HIDDEN},
            .up = {weights, AKIN_DTYPE_F32, INTERMEDIATE, HIDDEN},
            .down = {weights, AKIN_DTYPE_F32, HIDDEN, INTERMEDIATE},
        };
}

/* Two ranks, of which rank 0 gets spoiled messages. */
static void run_spoiled(int kind, void (*spoil)(unsigned char *, size_t *),
                        rank_run_t *runs)
{
    static const akin_ep_exchange_ops_t ops = {.name = "tamper",
                                               .swap = tamper_swap};
    akin_placement_t placement;
    local_group_t g;
    akin_error_t err = {{0}};
    make_placement(kind == AKINI_EP_ACTIVE ? 2 : 0, &placement);
    local_group_init(&g, &placement, SHORT_NS);
    static tamper_t t;
    t.base = (akin_ep_exchange_t){.ops = &ops, .rank = 0, .n_ranks = 2};
    t.inner = g.exchanges[0];
    t.kind = kind;
    t.spoil = spoil;
    akin_ep_group_destroy(g.groups[0]);
    const akin_ep_group_params_t params = {
        .exchange = &t.base, .placement = &placement, .timeout_ns = SHORT_NS};
    local_group_need(akin_ep_group_create(&params, &g.groups[0], &err), &err);
    for (uint32_t r = 0; r < 2; r++)
        runs[r] = (rank_run_t){.group = g.groups[r], .rank = r};
    local_group_each(2, run_rank, runs, sizeof(*runs));
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

static void refused(int kind, void (*spoil)(unsigned char *, size_t *))
{
    rank_run_t runs[2];
    run_spoiled(kind, spoil, runs);
    CU_ASSERT_EQUAL(runs[0].first, AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(runs[0].second, AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(runs[0].text, "rank 1 of the group"));
    /* The other one misses rank 0, in this layer or the next. */
    CU_ASSERT_EQUAL(runs[1].second, AKIN_ERR_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(runs[1].text, "rank 0 of the group"));
}

static void heads(void)
{
    for (int kind = AKINI_EP_ACTIVE; kind <= AKINI_EP_COMBINE; kind++) {
        refused(kind, cut_head);
        refused(kind, no_bytes);
        refused(kind, wrong_magic);
        refused(kind, wrong_version);
        refused(kind, wrong_kind);
        refused(kind, wrong_layer);
        refused(kind, wrong_hidden);
        refused(kind, wrong_epoch);
        refused(kind, one_byte_less);
        refused(kind, one_byte_more);
    }
}

static void bodies(void)
{
    refused(AKINI_EP_DISPATCH, too_many_rows);
    refused(AKINI_EP_DISPATCH, huge_rows);
    refused(AKINI_EP_DISPATCH, too_many_pairs);
    refused(AKINI_EP_DISPATCH, huge_pairs);
    refused(AKINI_EP_DISPATCH, row_beyond);
    refused(AKINI_EP_DISPATCH, expert_beyond);
    refused(AKINI_EP_DISPATCH, expert_elsewhere);
    refused(AKINI_EP_COMBINE, fewer_vectors);
    refused(AKINI_EP_COMBINE, huge_pairs);
    refused(AKINI_EP_ACTIVE, unknown_expert_active);
}

/* A rank that does not come, and one that has left. */
static void missing_ranks(void)
{
    for (int has_left = 0; has_left < 2; has_left++) {
        akin_placement_t placement;
        local_group_t g;
        make_placement(0, &placement);
        local_group_init(&g, &placement, SHORT_NS);
        rank_run_t run = {.group = g.groups[0]};
        if (has_left) {
            akin_ep_exchange_destroy(g.exchanges[1]);
            g.exchanges[1] = NULL;
        }
        run_rank(&run);
        CU_ASSERT_EQUAL(run.first, has_left ? AKIN_ERR_PEER : AKIN_ERR_TIMEOUT);
        CU_ASSERT_EQUAL(run.second, run.first);
        CU_ASSERT_PTR_NOT_NULL(strstr(run.text, "rank 1 of the group"));
        CU_ASSERT_PTR_NOT_NULL(strstr(run.text, "dispatch of layer 0"));
        local_group_cleanup(&g);
        akin_placement_cleanup(&placement);
    }
}

/* Sizes that do not belong together. */
static void contradictions(void)
{
    akin_placement_t placement;
    local_group_t g;
    akin_error_t err = {{0}};
    akin_ep_group_t *group = NULL;
    make_placement(0, &placement);
    local_group_init(&g, &placement, SHORT_NS);
    akin_expert_step_params_t step = {
        .kernels = akin_kernels_of(AKIN_KERNEL_PORTABLE),
        .hidden = HIDDEN,
        .intermediate = INTERMEDIATE,
        .n_experts = EXPERTS + 1,
        .top_k = TOP_K,
        .max_rows = MAX_ROWS,
    };
    CU_ASSERT_EQUAL(akin_ep_group_prepare(g.groups[0], &step, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "12 experts"));
    step.n_experts = EXPERTS;
    step.max_rows = UINT32_MAX;
    CU_ASSERT_EQUAL(akin_ep_group_prepare(g.groups[0], &step, &err),
                    AKIN_ERR_INVALID);
    step.max_rows = MAX_ROWS;
    CU_ASSERT_EQUAL(akin_ep_group_prepare(g.groups[0], &step, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_ep_group_prepare(g.groups[0], &step, &err),
                    AKIN_ERR_INVALID);
    /* Rows that nobody made room for: nothing goes out. */
    akin_team_t *team = akin_team_create();
    const akin_expert_batch_t batch = {.experts = experts,
                                       .n_rows = MAX_ROWS + 1};
    akin_status_t status = AKIN_OK;
    (void)akin_ep_group_run(g.groups[0], team, 0, 0, &batch, &status);
    CU_ASSERT_EQUAL(status, AKIN_ERR_RANGE);
    akin_team_destroy(team);
    akin_ep_exchange_t other = *g.exchanges[0];
    other.n_ranks = 3;
    const akin_ep_group_params_t params = {.exchange = &other,
                                           .placement = &placement};
    CU_ASSERT_EQUAL(akin_ep_group_create(&params, &group, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(group);
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
    akin_ep_group_destroy(NULL);
    akin_ep_exchange_destroy(NULL);
    akin_ep_local_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"heads that are not what is due", heads},
    {"bodies that contradict their heads", bodies},
    {"ranks that are missing", missing_ranks},
    {"sizes that do not belong together", contradictions},
};

RUNNER_MAIN("group_malformed", tests)
