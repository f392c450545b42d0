/* Frame: the header's bytes, and what is refused. */
#include "net/frame.h"

#include "runner.h"

#include <string.h>

static const akini_frame_t sample = {
    .type = 0x0102,
    .from = 40,
    .status = AKIN_ERR_RANGE,
    .from_incarnation = UINT64_C(0x1122334455667788),
    .to_incarnation = UINT64_C(0x99aabbccddeeff00),
    .sequence = 3,
    .offset = UINT64_C(0x100000000),
    .length = 4096,
};

/* AKIN_ERR_RANGE is -7. */
static const unsigned char golden[AKINI_FRAME_BYTES] = {
    'A',  'K',  'N',  'M',  0x01, 0x00, 0x02, 0x01, 0x28, 0x00, 0x00,
    0x00, 0xf9, 0xff, 0xff, 0xff, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
    0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x03,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void test_golden(void)
{
    unsigned char wire[AKINI_FRAME_BYTES];
    akini_frame_pack(&sample, wire);
    CU_ASSERT_EQUAL(memcmp(wire, golden, sizeof(wire)), 0);
    akini_frame_t back;
    CU_ASSERT_EQUAL_FATAL(akini_frame_unpack(golden, sizeof(golden), &back),
                          AKIN_OK);
    CU_ASSERT_EQUAL(back.type, 0x0102);
    CU_ASSERT_EQUAL(back.from, 40);
    CU_ASSERT_EQUAL(back.status, AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(back.from_incarnation, UINT64_C(0x1122334455667788));
    CU_ASSERT_EQUAL(back.to_incarnation, UINT64_C(0x99aabbccddeeff00));
    CU_ASSERT_EQUAL(back.sequence, 3);
    CU_ASSERT_EQUAL(back.offset, UINT64_C(0x100000000));
    CU_ASSERT_EQUAL(back.length, 4096);
}

static void test_refused(void)
{
    akini_frame_t frame;
    unsigned char wire[AKINI_FRAME_BYTES + 1] = {0};
    memcpy(wire, golden, AKINI_FRAME_BYTES);
    for (size_t n = 0; n < AKINI_FRAME_BYTES; n++)
        CU_ASSERT_EQUAL(akini_frame_unpack(wire, n, &frame), AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(akini_frame_unpack(wire, sizeof(wire), &frame),
                    AKIN_ERR_FORMAT);
    /* Magic, version and the reserved bytes at the end. */
    static const size_t guarded[] = {0, 3, 4, 5, 56, 63};
    for (size_t i = 0; i < sizeof(guarded) / sizeof(guarded[0]); i++) {
        wire[guarded[i]] ^= 0x40;
        CU_ASSERT_EQUAL(akini_frame_unpack(wire, AKINI_FRAME_BYTES, &frame),
                        AKIN_ERR_FORMAT);
        wire[guarded[i]] ^= 0x40;
    }
    CU_ASSERT_EQUAL(akini_frame_unpack(wire, AKINI_FRAME_BYTES, &frame),
                    AKIN_OK);
}

static const runner_test_t tests[] = {
    {"golden bytes", test_golden},
    {"malformed headers are refused", test_refused},
};
RUNNER_MAIN("frame", tests)
