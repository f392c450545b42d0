/* Transports: what KV travels over in a run, counted. */
#ifndef AKIN_ROLES_TRANSPORTS_H
#define AKIN_ROLES_TRANSPORTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Transports that are told apart; all others count as the last one. */
#define AKIN_TRANSPORTS_MAX 8

/** Where the two ranks of a pair are. */
typedef enum akin_pair_place {
    AKIN_PAIR_INSIDE,  /* both on one host */
    AKIN_PAIR_BETWEEN, /* on two */
    AKIN_PAIR_PLACES
} akin_pair_place_t;

typedef struct akin_transport {
    char name[24]; /* UCX's: "rc_mlx5", "sysv", "tcp" */
    uint64_t n_pairs[AKIN_PAIR_PLACES];
} akin_transport_t;

/** Bandwidths of pairs as the probe found them, bytes per second. */
typedef struct akin_transports_probe {
    uint64_t n_pairs;
    double min;
    double median;
    double max;
    uint64_t n_slow; /* below half the median */
} akin_transports_probe_t;

/** All pairs of a prefill and a decode rank. */
typedef struct akin_transports {
    uint32_t n_hosts; /* 0: nothing is known */
    uint32_t n_transports;
    akin_transport_t transports[AKIN_TRANSPORTS_MAX];
    /* Pairs on one host without shared memory; between hosts without RDMA. */
    uint64_t n_fallbacks[AKIN_PAIR_PLACES];
    int is_probed;
    akin_transports_probe_t probe[AKIN_PAIR_PLACES];
} akin_transports_t;

#ifdef __cplusplus
}
#endif

#endif
