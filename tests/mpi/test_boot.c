/* Boot: broadcast, agreement, roles, exchange, and life after MPI. */
#include "net_fixture.h"

#include <mpi.h>

static void broadcast(akin_boot_t *boot)
{
    akin_error_t err = {{0}};
    char *text = NULL;
    size_t bytes = 300000;
    char *long_text = malloc(bytes + 1);
    CHECK_FATAL(long_text != NULL);
    for (size_t i = 0; i < bytes; i++)
        long_text[i] = (char)('a' + fixture_byte(0, i) % 26);
    long_text[bytes] = '\0';
    akin_status_t status = akin_boot_broadcast(
        boot, AKIN_OK, fixture_rank == 0 ? long_text : NULL, &text, &err);
    fixture_ok(status, &err);
    CHECK(strcmp(text, long_text) == 0);
    free(text);
    free(long_text);
    fixture_ok(akin_boot_broadcast(boot, AKIN_OK, "", &text, &err), &err);
    CHECK(strcmp(text, "") == 0);
    free(text);
    /* Rank 0 has no text; its words reach everybody. */
    akin_error_t why = {{0}};
    status = AKIN_OK;
    if (fixture_rank == 0)
        status = akin_error_set(&why, AKIN_ERR_CONFIG, "job.conf:3: kv.slab");
    status = akin_boot_broadcast(boot, status, NULL, &text, &why);
    CHECK(status == AKIN_ERR_CONFIG);
    CHECK(strcmp(why.text, "job.conf:3: kv.slab") == 0);
    CHECK(text == NULL);
}

static void agree(akin_boot_t *boot, uint32_t size)
{
    akin_error_t err = {{0}};
    CHECK(akin_boot_agree(boot, AKIN_OK, &err) == AKIN_OK);
    /* All but rank 0 fail, each with its own status: rank 1 is heard. */
    static const akin_status_t mine[] = {AKIN_OK, AKIN_ERR_NOT_FOUND,
                                         AKIN_ERR_NOMEM};
    akin_status_t status = mine[fixture_rank % 3];
    if (status != AKIN_OK)
        akin_error_set(&err, status, "no model on host %u",
                       (unsigned)fixture_rank);
    CHECK(akin_boot_agree(boot, status, &err) == AKIN_ERR_NOT_FOUND);
    CHECK(strcmp(err.text, "rank 1: no model on host 1") == 0);
    int64_t least = 0;
    fixture_ok(akin_boot_min(boot, 5 - (int64_t)fixture_rank, &least, &err),
               &err);
    CHECK(least == 5 - (int64_t)(size - 1));
}

static void roles(akin_boot_t *boot, uint32_t size)
{
    akin_error_t err = {{0}};
    uint32_t index = 99, count = 99;
    fixture_ok(
        akin_boot_role(boot, fixture_rank == 0 ? 0 : 1, &index, &count, &err),
        &err);
    CHECK(index == (fixture_rank == 0 ? 0 : fixture_rank - 1));
    CHECK(count == (fixture_rank == 0 ? 1 : size - 1));
}

static void exchange(akin_boot_t *boot, uint32_t size)
{
    akin_error_t err = {{0}};
    /* Rank r gives 1000 r bytes: rank 0 none. */
    unsigned char blob[8000];
    fixture_fill(blob, sizeof(blob), fixture_rank, 0);
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    fixture_ok(akin_boot_exchange(boot, blob, 1000 * (size_t)fixture_rank,
                                  &blobs, &offsets, &err),
               &err);
    CHECK(offsets[0] == 0 && offsets[1] == 0);
    for (uint32_t r = 0; r < size; r++) {
        CHECK_FATAL(offsets[r + 1] - offsets[r] == 1000 * (size_t)r);
        CHECK(fixture_wrong(blobs + offsets[r], 1000 * (size_t)r, r, 0) == 0);
    }
    free(blobs);
    free(offsets);
}

int main(void)
{
    uint32_t rank = 99, size = 99;
    CHECK(akin_boot_is_launched());
    CHECK(akin_boot_launch_rank(&rank, &size) == AKIN_OK);
    akin_boot_t *boot = fixture_boot();
    CHECK(akin_boot_rank(boot) == rank && akin_boot_size(boot) == size);
    CHECK_FATAL(size >= 2 && size <= 8);
    broadcast(boot);
    agree(boot, size);
    roles(boot, size);
    exchange(boot, size);
    akin_error_t err = {{0}};
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    akin_boot_finish(boot);
    int finalized = 0;
    MPI_Finalized(&finalized);
    CHECK(finalized);
    akin_boot_finish(NULL);
    return fixture_failures != 0;
}
