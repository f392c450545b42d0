/* Message: golden bytes of every type, every truncation and every wrong value
 * refused. */
#include "roles/message.h"

#include "message_kinds.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 512u

static void golden(void)
{
    for (size_t k = 0; k < N_KINDS; k++) {
        akin_packer_t p = {0};
        int same = 0;
        kinds[k].pack(&p);
        CU_ASSERT_EQUAL(p.status, AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(p.bytes, kinds[k].bytes);
        CU_ASSERT_EQUAL(memcmp(p.data, kinds[k].golden, p.bytes), 0);
        CU_ASSERT_EQUAL(kinds[k].unpack(p.data, p.bytes, &same), AKIN_OK);
        CU_ASSERT(same);
        akin_packer_cleanup(&p);
    }
    /* A type keeps its number for good. */
    CU_ASSERT_EQUAL(AKIN_MESSAGE_PREFILL, 1);
    CU_ASSERT_EQUAL(AKIN_MESSAGE_STATS, 12);
    CU_ASSERT_EQUAL(AKIN_MESSAGE_ROUTES, 13);
    CU_ASSERT_EQUAL(AKIN_MESSAGE_EP_END, 17);
    CU_ASSERT_EQUAL(AKIN_MESSAGE_PLACED, 19);
    CU_ASSERT_EQUAL(AKIN_MESSAGE_LEASES, 28);
    for (int type = 1; type < AKIN_MESSAGE_TYPES; type++)
        CU_ASSERT_STRING_NOT_EQUAL(akin_message_name((uint16_t)type), "?");
    CU_ASSERT_STRING_EQUAL(akin_message_name(AKIN_MESSAGE_TOKENS), "TOKENS");
    CU_ASSERT_STRING_EQUAL(akin_message_name(AKIN_MESSAGE_TYPES), "?");
}

/* From memory of exactly that size, where a sanitizer sees a byte too far. */
static akin_status_t unpack_copy(const kind_t *kind, const void *data,
                                 size_t bytes)
{
    int same;
    void *copy = malloc(bytes > 0 ? bytes : 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    akin_status_t status = kind->unpack(copy, bytes, &same);
    free(copy);
    return status;
}

static void truncated(void)
{
    unsigned char longer[MAX_BYTES];
    for (size_t k = 0; k < N_KINDS; k++) {
        const size_t bytes = kinds[k].bytes;
        CU_ASSERT_FATAL(bytes < MAX_BYTES);
        for (size_t n = 0; n < bytes; n++)
            CU_ASSERT_NOT_EQUAL(unpack_copy(&kinds[k], kinds[k].golden, n),
                                AKIN_OK);
        memcpy(longer, kinds[k].golden, bytes);
        longer[bytes] = 0;
        CU_ASSERT_EQUAL(unpack_copy(&kinds[k], longer, bytes + 1),
                        AKIN_ERR_FORMAT);
    }
}

/* Any four bytes replaced: whatever the verdict, nothing is read too far and
 * no count asks for memory that the bytes cannot fill. */
static void damaged(void)
{
    static const uint32_t values[] = {0, 1, 0x7fffffff, 0xffffffff, 0x7fc00000};
    unsigned char bytes[MAX_BYTES];
    for (size_t k = 0; k < N_KINDS; k++)
        for (size_t at = 0; at + 4 <= kinds[k].bytes; at++)
            for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
                memcpy(bytes, kinds[k].golden, kinds[k].bytes);
                memcpy(bytes + at, &values[v], 4);
                akin_status_t status =
                    unpack_copy(&kinds[k], bytes, kinds[k].bytes);
                CU_ASSERT(status == AKIN_OK || status == AKIN_ERR_FORMAT ||
                          status == AKIN_ERR_RANGE);
            }
}

static akin_status_t prefill_with(akin_message_sampling_t h, size_t n_tokens)
{
    akin_packer_t p = {0};
    int same;
    const akin_message_prefill_t m = {
        .how = h, .tokens = tokens, .n_tokens = n_tokens};
    akin_message_pack_prefill(&p, &m);
    akin_status_t status = unpack_prefill(p.data, p.bytes, &same);
    akin_packer_cleanup(&p);
    return status;
}

static akin_status_t decode_with(size_t n_tokens, size_t n_blocks)
{
    akin_packer_t p = {0};
    int same;
    const akin_message_decode_t m = {.how = how,
                                     .tokens = tokens,
                                     .n_tokens = n_tokens,
                                     .blocks = blocks,
                                     .n_blocks = n_blocks};
    akin_message_pack_decode(&p, &m);
    akin_status_t status = unpack_decode(p.data, p.bytes, &same);
    akin_packer_cleanup(&p);
    return status;
}

/* One byte of a golden message changed. */
static akin_status_t changed(const kind_t *kind, size_t at, unsigned char value)
{
    unsigned char bytes[MAX_BYTES];
    memcpy(bytes, kind->golden, kind->bytes);
    bytes[at] = value;
    return unpack_copy(kind, bytes, kind->bytes);
}

static void wrong_values(void)
{
    akin_message_sampling_t h = how;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_OK);
    CU_ASSERT_EQUAL(prefill_with(h, 0), AKIN_ERR_RANGE);
    h.max_tokens = 0;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_ERR_RANGE);
    h = how;
    h.n_top = AKIN_REQUEST_MAX_TOP + 1;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_ERR_RANGE);
    h = how;
    h.sampling.temperature = NAN;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_ERR_RANGE);
    h.sampling.temperature = -1.0f;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_ERR_RANGE);
    h = how;
    h.sampling.top_p = 1.5f;
    CU_ASSERT_EQUAL(prefill_with(h, 3), AKIN_ERR_RANGE);

    /* The first generated token comes behind at least one of the prompt. */
    CU_ASSERT_EQUAL(decode_with(2, 1), AKIN_OK);
    CU_ASSERT_EQUAL(decode_with(1, 1), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(decode_with(2, 0), AKIN_ERR_RANGE);

    /* refusal; finished of the second token; n_top of the first logprob. */
    CU_ASSERT_EQUAL(changed(&kinds[3], 12, AKIN_KV_REFUSAL_COUNT),
                    AKIN_ERR_RANGE);
    const size_t end = kinds[4].bytes;
    CU_ASSERT_EQUAL(changed(&kinds[4], end - 2, 3), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(changed(&kinds[4], 54 + 4, AKIN_REQUEST_MAX_TOP + 1),
                    AKIN_ERR_RANGE);

    /* A step of negative time; neither work nor none. */
    CU_ASSERT_EQUAL(changed(&kinds[5], 7, 0x80), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(changed(&kinds[10], 8, 2), AKIN_ERR_RANGE);

    /* Rows of routes: none, or not all of one length. */
    CU_ASSERT_EQUAL(changed(&kinds[9], 12, 0), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(changed(&kinds[9], 12, 3), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(changed(&kinds[9], 12, 4), AKIN_OK);
}

static const runner_test_t tests[] = {
    {"golden bytes", golden},
    {"truncated", truncated},
    {"damaged", damaged},
    {"wrong values", wrong_values},
};

RUNNER_MAIN("message", tests)
