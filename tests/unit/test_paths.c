/* Paths: what is counted and what is judged, of jobs on hosts with and without
 * RDMA. */
#include "paths_bed.h"

/* Router and two prefill ranks on a, decode ranks on a, b, c. */
static const char *const three_hosts[] = {"a", "a", "a", "a", "b", "c"};

static uint64_t pairs(const paths_bed_t *bed, const char *name,
                      akin_pair_place_t place)
{
    const akin_transports_t *all = &bed->transports;
    for (uint32_t i = 0; i < all->n_transports; i++)
        if (strcmp(all->transports[i].name, name) == 0)
            return all->transports[i].n_pairs[place];
    return 0;
}

static void as_it_should(void)
{
    paths_bed_t bed;
    paths_bed_create(&bed, 2, 3, three_hosts);
    paths_bed_connect(&bed, paths_bed_good);
    CU_ASSERT_EQUAL(bed.transports.n_hosts, 3);
    CU_ASSERT_EQUAL(bed.transports.n_transports, 2);
    CU_ASSERT_EQUAL(pairs(&bed, "sysv", AKIN_PAIR_INSIDE), 2);
    CU_ASSERT_EQUAL(pairs(&bed, "sysv", AKIN_PAIR_BETWEEN), 0);
    CU_ASSERT_EQUAL(pairs(&bed, "rc_mlx5", AKIN_PAIR_BETWEEN), 4);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_INSIDE], 0);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_BETWEEN], 0);
    CU_ASSERT_STRING_EQUAL(paths_bed_told(&bed, AKIN_PAIR_BETWEEN), "");
    akini_paths_cleanup(&bed.paths);
    akini_paths_cleanup(&bed.paths);
}

/* Rank 5, on c, has lost its way, seen from its end only. */
static const char *one_lost(const akini_paths_t *paths, uint32_t from,
                            uint32_t to)
{
    return from == 5 ? "tcp/eth0" : paths_bed_good(paths, from, to);
}

static void one_end_falls_back(void)
{
    paths_bed_t bed;
    paths_bed_create(&bed, 2, 3, three_hosts);
    paths_bed_connect(&bed, one_lost);
    CU_ASSERT_EQUAL(pairs(&bed, "tcp", AKIN_PAIR_BETWEEN), 2);
    CU_ASSERT_EQUAL(pairs(&bed, "rc_mlx5", AKIN_PAIR_BETWEEN), 2);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_BETWEEN], 2);
    bed.paths.hosts[5].n_ports = 0;
    CU_ASSERT_STRING_EQUAL(
        paths_bed_told(&bed, AKIN_PAIR_BETWEEN),
        "KV between hosts goes over tcp in 2 of 4 pairs, as between rank 1 "
        "(prefill 0, host a, rc_mlx5/mlx5_0:1) and rank 5 (decode 2, host c, "
        "tcp/eth0): host c has no RDMA device");
    CU_ASSERT_STRING_EQUAL(paths_bed_told(&bed, AKIN_PAIR_INSIDE), "");
    akini_paths_cleanup(&bed.paths);
}

/* The other end alone is as bad: the data comes from there. */
static const char *owner_lost(const akini_paths_t *paths, uint32_t from,
                              uint32_t to)
{
    return from == 2 && to == 4 ? "tcp/eth0" : paths_bed_good(paths, from, to);
}

static void the_owner_falls_back(void)
{
    paths_bed_t bed;
    paths_bed_create(&bed, 2, 3, three_hosts);
    paths_bed_connect(&bed, owner_lost);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_BETWEEN], 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(paths_bed_told(&bed, AKIN_PAIR_BETWEEN),
                                  "goes over tcp in 1 of 4 pairs, as between "
                                  "rank 2 (prefill 1, host a, tcp/eth0) and "
                                  "rank 4 (decode 1, host b, "
                                  "rc_mlx5/mlx5_0:1)"));
    akini_paths_cleanup(&bed.paths);
}

static const char *all_tcp(const akini_paths_t *paths, uint32_t from,
                           uint32_t to)
{
    (void)paths;
    (void)from;
    (void)to;
    return "tcp/eth0";
}

static const char *all_unknown(const akini_paths_t *paths, uint32_t from,
                               uint32_t to)
{
    (void)paths;
    (void)from;
    (void)to;
    return "unknown";
}

static const char *all_rdma(const akini_paths_t *paths, uint32_t from,
                            uint32_t to)
{
    (void)paths;
    (void)from;
    (void)to;
    return "rc_verbs/mlx5_0:1";
}

static const char *all_shared(const akini_paths_t *paths, uint32_t from,
                              uint32_t to)
{
    (void)paths;
    (void)from;
    (void)to;
    return "posix/memory";
}

static void kinds_of_lanes(void)
{
    static const struct {
        paths_bed_lane_fn_t lane;
        uint64_t inside, between;
    } cases[] = {
        {all_tcp, 2, 4},
        {all_unknown, 2, 4},
        {all_rdma, 2, 0},
        /* Containers of one machine have other names and one memory. */
        {all_shared, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        paths_bed_t bed;
        paths_bed_create(&bed, 2, 3, three_hosts);
        paths_bed_connect(&bed, cases[i].lane);
        const uint64_t *n = bed.transports.n_fallbacks;
        CU_ASSERT_EQUAL(n[AKIN_PAIR_INSIDE], cases[i].inside);
        CU_ASSERT_EQUAL(n[AKIN_PAIR_BETWEEN], cases[i].between);
        akini_paths_cleanup(&bed.paths);
    }
}

/* Two machines may have one name. */
static void hosts_of_one_name(void)
{
    paths_bed_t bed;
    paths_bed_create(&bed, 2, 3, three_hosts);
    bed.paths.hosts[3].machine = 2;
    akini_paths_count_hosts(&bed.paths);
    CU_ASSERT_EQUAL(bed.paths.n_hosts, 4);
    paths_bed_connect(&bed, all_tcp);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_INSIDE], 0);
    CU_ASSERT_EQUAL(bed.transports.n_fallbacks[AKIN_PAIR_BETWEEN], 6);
    akini_paths_cleanup(&bed.paths);
}

static const char *one_each(const akini_paths_t *paths, uint32_t from,
                            uint32_t to)
{
    static const char *const names[] = {"t0/a", "t1/a", "t2/a", "t3/a",
                                        "t4/a", "t5/a", "t6/a", "t7/a",
                                        "t8/a", "t9/a", "t9/b"};
    (void)paths;
    return names[from == 1 ? to - 2 : from - 2];
}

/* What has no counter of its own is not lost. */
static void more_transports_than_counters(void)
{
    static const char *const hosts[] = {"a", "a", "b", "b", "b", "b", "b",
                                        "b", "b", "b", "b", "b", "b"};
    paths_bed_t bed;
    uint64_t n = 0;
    paths_bed_create(&bed, 1, 11, hosts);
    paths_bed_connect(&bed, one_each);
    CU_ASSERT_EQUAL(bed.transports.n_transports, AKIN_TRANSPORTS_MAX);
    for (uint32_t i = 0; i < bed.transports.n_transports; i++)
        n += bed.transports.transports[i].n_pairs[AKIN_PAIR_BETWEEN];
    CU_ASSERT_EQUAL(n, 11);
    CU_ASSERT_EQUAL(pairs(&bed, "t6", AKIN_PAIR_BETWEEN), 1);
    CU_ASSERT_EQUAL(pairs(&bed, "other", AKIN_PAIR_BETWEEN), 4);
    akini_paths_cleanup(&bed.paths);
}

static const runner_test_t tests[] = {
    {"all is as it should be", as_it_should},
    {"a decode rank's end falls back", one_end_falls_back},
    {"a prefill rank's end falls back", the_owner_falls_back},
    {"which lanes are right where", kinds_of_lanes},
    {"hosts of one name", hosts_of_one_name},
    {"more transports than counters", more_transports_than_counters},
};
RUNNER_MAIN("paths", tests)
