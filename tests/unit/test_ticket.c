/* Ticket: what a later life is left, and tickets that were damaged. */
#include "roles/ticket.h"

#include "net/wire.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char router[] = {7, 0, 255, 0, 1};

static const akini_ticket_t full = {
    .rank = 5,
    .host_ranks = 3,
    .job = "model.path = \"a\"\n",
    .kernel = "avx2",
    .placements = "{}",
    .router = router,
    .router_bytes = sizeof(router),
};

static void *pack(const akini_ticket_t *ticket, size_t *bytes_p)
{
    void *data;
    CU_ASSERT_EQUAL_FATAL(akini_ticket_pack(ticket, &data, bytes_p), AKIN_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    return data;
}

static void round_trip(void)
{
    size_t bytes;
    akini_ticket_t t;
    void *data = pack(&full, &bytes);
    CU_ASSERT_EQUAL_FATAL(akini_ticket_unpack(data, bytes, &t), AKIN_OK);
    CU_ASSERT(t.rank == 5 && t.host_ranks == 3);
    CU_ASSERT_STRING_EQUAL(t.job, full.job);
    CU_ASSERT_STRING_EQUAL(t.kernel, "avx2");
    CU_ASSERT_STRING_EQUAL(t.placements, "{}");
    CU_ASSERT_EQUAL_FATAL(t.router_bytes, sizeof(router));
    CU_ASSERT_EQUAL(memcmp(t.router, router, sizeof(router)), 0);
    free(data);
    const akini_ticket_t none = {
        .job = "", .kernel = "", .placements = "", .router = ""};
    data = pack(&none, &bytes);
    CU_ASSERT_EQUAL_FATAL(akini_ticket_unpack(data, bytes, &t), AKIN_OK);
    CU_ASSERT(t.rank == 0 && t.router_bytes == 0);
    CU_ASSERT_STRING_EQUAL(t.placements, "");
    free(data);
}

/* From memory of exactly that size, so that a read beyond shows. */
static akin_status_t unpack(const unsigned char *data, size_t bytes)
{
    akini_ticket_t t;
    unsigned char *copy = malloc(bytes > 0 ? bytes : 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    akin_status_t status = akini_ticket_unpack(copy, bytes, &t);
    /* Texts that are taken end where they say. */
    if (status == AKIN_OK)
        CU_ASSERT(strlen(t.job) + strlen(t.kernel) + strlen(t.placements) <
                  bytes);
    free(copy);
    return status;
}

static void damaged(void)
{
    size_t bytes;
    unsigned char *data = pack(&full, &bytes);
    for (size_t n = 0; n < bytes; n++)
        CU_ASSERT_EQUAL(unpack(data, n), AKIN_ERR_FORMAT);
    /* Too long. */
    unsigned char *more = calloc(1, bytes + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(more);
    memcpy(more, data, bytes);
    CU_ASSERT_EQUAL(unpack(more, bytes + 1), AKIN_ERR_FORMAT);
    /* Any byte may be any other: it is taken or refused, no more. */
    for (size_t i = 0; i < bytes; i++)
        for (unsigned value = 0; value < 256; value++) {
            const unsigned char was = data[i];
            data[i] = (unsigned char)value;
            const akin_status_t status = unpack(data, bytes);
            CU_ASSERT(status == AKIN_OK || status == AKIN_ERR_FORMAT);
            data[i] = was;
        }
    free(more);
    free(data);
}

/* A text without an end is none. */
static void endless(void)
{
    akin_packer_t p = {0};
    akin_packer_u32(&p, 1);
    akin_packer_u32(&p, 1);
    akin_packer_bytes(&p, "job", 3);
    akin_packer_bytes(&p, "", 1);
    akin_packer_bytes(&p, "", 1);
    akin_packer_bytes(&p, "", 1);
    CU_ASSERT_EQUAL_FATAL(p.status, AKIN_OK);
    CU_ASSERT_EQUAL(unpack(p.data, p.bytes), AKIN_ERR_FORMAT);
    akin_packer_cleanup(&p);
}

static const runner_test_t tests[] = {
    {"round trip", round_trip}, {"damaged", damaged}, {"endless", endless}};

RUNNER_MAIN("ticket", tests)
