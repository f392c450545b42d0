/* Paths, print: a line, a matrix, and counts with exceptions. */
#include "paths_bed.h"

static char *printed(const paths_bed_t *bed)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(akini_paths_print(&bed->paths, &bed->transports, file),
                    AKIN_OK);
    (void)fclose(file);
    return text;
}

static void check(const paths_bed_t *bed, const char *wanted)
{
    char *text = printed(bed);
    CU_ASSERT_STRING_EQUAL(text, wanted);
    free(text);
}

static void one_host(void)
{
    static const char *const names[] = {"a", "a", "a", "a"};
    paths_bed_t bed;
    paths_bed_create(&bed, 1, 2, names);
    paths_bed_connect(&bed, paths_bed_good);
    check(&bed, "akin: KV over sysv on one host\n");
    akini_paths_cleanup(&bed.paths);
}

/* Rank 6 has no RDMA. */
static const char *some_tcp(const akini_paths_t *paths, uint32_t from,
                            uint32_t to)
{
    return from == 6 || to == 6 ? "tcp/eth0" : paths_bed_good(paths, from, to);
}

static void matrix(void)
{
    static const char *const names[] = {"a", "a", "b", "a", "c", "c", "c"};
    paths_bed_t bed;
    paths_bed_create(&bed, 2, 4, names);
    paths_bed_connect(&bed, some_tcp);
    check(&bed, "akin: KV over 3 hosts:\n"
                "prefill \\ decode a       c\n"
                "a                sysv    rc_mlx5, tcp\n"
                "b                rc_mlx5 rc_mlx5, tcp\n");
    akini_paths_cleanup(&bed.paths);
}

/* Host n00 has the router and prefill ranks, n01 .. n39 a decode rank each; the
 * first `n_bad` of those have no RDMA. */
static uint32_t n_bad;

static const char *few_tcp(const akini_paths_t *paths, uint32_t from,
                           uint32_t to)
{
    const uint32_t decode = from < to ? to : from;
    return decode < 3 + n_bad ? "tcp/eth0" : paths_bed_good(paths, from, to);
}

static void many_hosts(uint32_t bad, const char *wanted)
{
    static char texts[42][8];
    const char *names[42];
    paths_bed_t bed;
    for (uint32_t r = 0; r < 42; r++) {
        (void)snprintf(texts[r], sizeof(texts[r]), "n%02u", r < 3 ? 0 : r - 2);
        names[r] = texts[r];
    }
    paths_bed_create(&bed, 2, 39, names);
    n_bad = bad;
    paths_bed_connect(&bed, few_tcp);
    check(&bed, wanted);
    akini_paths_cleanup(&bed.paths);
}

static void counts(void)
{
    many_hosts(0, "akin: KV over 40 hosts, pairs of a prefill and a decode "
                  "rank:\n"
                  "akin:   78 between hosts over rc_mlx5\n");
    many_hosts(2, "akin: KV over 40 hosts, pairs of a prefill and a decode "
                  "rank:\n"
                  "akin:   4 between hosts over tcp\n"
                  "akin:   74 between hosts over rc_mlx5\n"
                  "akin:   but tcp from n00 to n01\n"
                  "akin:   but tcp from n00 to n02\n");
    many_hosts(12, "akin: KV over 40 hosts, pairs of a prefill and a decode "
                   "rank:\n"
                   "akin:   24 between hosts over tcp\n"
                   "akin:   54 between hosts over rc_mlx5\n"
                   "akin:   but tcp from n00 to n01\n"
                   "akin:   but tcp from n00 to n02\n"
                   "akin:   but tcp from n00 to n03\n"
                   "akin:   but tcp from n00 to n04\n"
                   "akin:   but tcp from n00 to n05\n"
                   "akin:   but tcp from n00 to n06\n"
                   "akin:   but tcp from n00 to n07\n"
                   "akin:   but tcp from n00 to n08\n"
                   "akin:   but tcp from n00 to n09\n"
                   "akin:   but tcp from n00 to n10\n"
                   "akin:   and 2 more\n");
}

static const runner_test_t tests[] = {
    {"one host", one_host},
    {"a matrix", matrix},
    {"too many hosts for a matrix", counts},
};
RUNNER_MAIN("paths, print", tests)
