/* Malformed and foreign frames, on purpose out of order: two nets in one
 * process, one of them driven past its own rules. */
#include "net/net_internal.h"

#include "base/clock.h"
#include "base/rng.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

typedef struct ear {
    char heard[64]; /* first payload byte of each message */
    size_t n_heard;
    int n_lost;
    size_t heard_at_loss;
    akin_status_t loss;
} ear_t;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    ear_t *ear = arg;
    (void)from;
    (void)type;
    if (ear->n_heard + 1 < sizeof(ear->heard))
        ear->heard[ear->n_heard++] = bytes > 0 ? *(const char *)payload : '-';
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    ear_t *ear = arg;
    (void)rank;
    ear->n_lost++;
    ear->loss = status;
    ear->heard_at_loss = ear->n_heard;
}

static akin_net_t *talker, *listener;
static ear_t talker_ear, ear;

static akin_net_t *make_net(uint32_t rank, ear_t *to)
{
    const akin_net_params_t params = {
        .rank = rank,
        .n_ranks = 3,
        .slab_bytes = 8192,
        .max_message_bytes = 100000,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = to},
    };
    akin_net_t *net = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_create(&params, &net, &err), AKIN_OK);
    return net;
}

static void connect_to(akin_net_t *net, akin_net_t *other, uint32_t rank)
{
    void *blob;
    size_t bytes;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_identity(other, &blob, &bytes, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_net_add_peer(net, rank, blob, bytes, &err),
                          AKIN_OK);
    free(blob);
}

static void start(void)
{
    memset(&ear, 0, sizeof(ear));
    memset(&talker_ear, 0, sizeof(talker_ear));
    talker = make_net(0, &talker_ear);
    listener = make_net(1, &ear);
    connect_to(talker, listener, 1);
    connect_to(listener, talker, 0);
}

static void stop(void)
{
    akin_net_destroy(talker);
    akin_net_destroy(listener);
}

static void poll_both(void)
{
    for (int i = 0; i < 50; i++) {
        akin_net_poll(talker);
        akin_net_poll(listener);
    }
}

static void wait_heard(size_t n)
{
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    while (ear.n_heard < n && akin_clock_now_ns() < limit_ns)
        poll_both();
    CU_ASSERT_EQUAL(ear.n_heard, n);
}

/* Send any bytes as a header over the talker's endpoint. */
static void raw(unsigned am_id, const void *header, size_t header_bytes,
                const void *payload, size_t bytes)
{
    const ucp_request_param_t param = {0};
    ucs_status_ptr_t request =
        ucp_am_send_nbx(talker->peers[1].endpoint, am_id, header, header_bytes,
                        payload, bytes, &param);
    CU_ASSERT_FALSE_FATAL(UCS_PTR_IS_ERR(request));
    if (request == NULL)
        return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        poll_both();
    ucp_request_free(request);
}

static akini_frame_t message_frame(uint64_t sequence, uint64_t length)
{
    return (akini_frame_t){
        .type = 1,
        .from = 0,
        .from_incarnation = talker->incarnation,
        .to_incarnation = listener->incarnation,
        .sequence = sequence,
        .length = length,
    };
}

static void raw_frame(unsigned am_id, const akini_frame_t *frame,
                      const void *payload, size_t bytes)
{
    unsigned char wire[AKINI_FRAME_BYTES];
    akini_frame_pack(frame, wire);
    raw(am_id, wire, sizeof(wire), payload, bytes);
}

static void say(uint64_t sequence, const char *word)
{
    akini_frame_t frame = message_frame(sequence, 1);
    raw_frame(AKINI_AM_MESSAGE, &frame, word, 1);
}

static void test_order(void)
{
    start();
    say(0, "a");
    wait_heard(1);
    say(3, "d");
    say(2, "c");
    say(UINT64_MAX, "z");
    poll_both();
    CU_ASSERT_EQUAL(ear.n_heard, 1);
    say(1, "b");
    wait_heard(4);
    /* Used numbers are dropped, those that are held back too. */
    say(1, "x");
    say(5, "f");
    say(5, "y");
    say(4, "e");
    wait_heard(6);
    CU_ASSERT_STRING_EQUAL(ear.heard, "abcdef");
    CU_ASSERT_EQUAL(ear.n_lost, 0);
    stop();
}

static void test_foreign(void)
{
    start();
    unsigned char header[96], payload[256] = {0};
    for (uint64_t i = 0; i < 600; i++) {
        for (size_t k = 0; k < sizeof(header); k++)
            header[k] = (unsigned char)akin_rng_u64(1, i, k);
        raw(1 + (unsigned)(i % 3), header, i % sizeof(header), payload,
            i % sizeof(payload));
    }
    /* One flipped byte in the part that says whose frame it is. */
    for (size_t i = 0; i < 32; i++) {
        akini_frame_t frame = message_frame(0, 1);
        akini_frame_pack(&frame, header);
        header[i] ^= 0x80;
        if (i == 6 || i == 7 || (i >= 12 && i < 24))
            continue; /* type, status; a later life of the sender */
        raw(AKINI_AM_MESSAGE, header, AKINI_FRAME_BYTES, "x", 1);
    }
    poll_both();
    CU_ASSERT_EQUAL(ear.n_heard, 0);
    CU_ASSERT_EQUAL(ear.n_lost, 0);
    CU_ASSERT_EQUAL(akin_net_send(talker, 1, 1, "k", 1), AKIN_OK);
    wait_heard(1);
    CU_ASSERT_STRING_EQUAL(ear.heard, "k");
    stop();
}

static void test_bad_reads(void)
{
    start();
    static const uint64_t edges[] = {0,
                                     1,
                                     8191,
                                     8192,
                                     8193,
                                     UINT64_MAX,
                                     UINT64_MAX - 8191,
                                     UINT64_C(1) << 63};
    for (size_t i = 0; i < 64; i++) {
        akini_frame_t frame = message_frame(i, edges[i / 8]);
        frame.offset = edges[i % 8];
        frame.type = AKINI_FRAME_READ_REQUEST;
        raw_frame(AKINI_AM_READ_REQUEST, &frame, NULL, 0);
        /* An answer that nobody has asked for. */
        frame.type = AKINI_FRAME_READ_DATA;
        raw_frame(AKINI_AM_READ_DATA, &frame, "data", 4);
    }
    poll_both();
    CU_ASSERT_EQUAL(akin_net_send(talker, 1, 1, "k", 1), AKIN_OK);
    wait_heard(1);
    CU_ASSERT_EQUAL(ear.n_lost + talker_ear.n_lost, 0);
    stop();
}

/* A message that can never be handed over leaves a hole: its sender is lost. */
static void test_wrong_length(void)
{
    start();
    say(0, "a");
    wait_heard(1);
    akini_frame_t frame = message_frame(1, 2);
    raw_frame(AKINI_AM_MESSAGE, &frame, "b", 1);
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    while (ear.n_lost == 0 && akin_clock_now_ns() < limit_ns)
        poll_both();
    CU_ASSERT_EQUAL(ear.n_lost, 1);
    CU_ASSERT_EQUAL(ear.loss, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(akin_net_send(listener, 0, 1, "x", 1), AKIN_ERR_PEER);
    stop();
    CU_ASSERT_EQUAL(ear.n_lost, 1);
}

static void test_successor(void)
{
    start();
    say(0, "a");
    wait_heard(1);
    say(2, "x"); /* held back, then forgotten with its sender */
    akini_frame_t frame = message_frame(0, 1);
    frame.from_incarnation++;
    raw_frame(AKINI_AM_MESSAGE, &frame, "b", 1);
    wait_heard(2);
    CU_ASSERT_STRING_EQUAL(ear.heard, "ab");
    CU_ASSERT_EQUAL(ear.n_lost, 1);
    CU_ASSERT_EQUAL(ear.heard_at_loss, 1);
    stop();
}

static void test_dropped_peer(void)
{
    start();
    CU_ASSERT_EQUAL(akin_net_send(talker, 1, 1, "a", 1), AKIN_OK);
    wait_heard(1);
    akin_net_drop_peer(listener, 0);
    akin_net_drop_peer(listener, 0);
    CU_ASSERT_EQUAL(ear.n_lost, 0);
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    while (ear.n_lost == 0 && akin_clock_now_ns() < limit_ns)
        akin_net_poll(listener);
    CU_ASSERT_EQUAL(ear.n_lost, 1);
    CU_ASSERT_EQUAL(ear.loss, AKIN_ERR_PEER);
    /* The process that was given up cannot come back under its identity. */
    void *blob;
    size_t bytes;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_identity(talker, &blob, &bytes, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(akin_net_add_peer(listener, 0, blob, bytes, &err),
                    AKIN_ERR_PEER);
    free(blob);
    stop();
}

static const runner_test_t tests[] = {
    {"messages are put in order", test_order},
    {"foreign frames are dropped", test_foreign},
    {"bad reads are dropped", test_bad_reads},
    {"a wrong length loses the sender", test_wrong_length},
    {"a successor ends its predecessor", test_successor},
    {"a peer that is given up", test_dropped_peer},
};
RUNNER_MAIN("net malformed", tests)
