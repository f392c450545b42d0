/* Machine: what one accelerator, or one CPU, is able to do, and where the
 * figures come from. */
#ifndef AKIN_ROUTING_MACHINE_H
#define AKIN_ROUTING_MACHINE_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A link, one direction. */
typedef struct akin_machine_link {
    double bytes_per_s;
    double latency_s; /* of a message */
} akin_machine_link_t;

typedef struct akin_machine {
    const char *name;
    double memory_bytes_per_s; /* peak */
    double flops_per_s;        /* peak, dense, of the weights' type */
    /* Parts of the peaks that are reached: of the memory by the kernels of
     * experts, of experts of four bits that they unpack, and of everything
     * else, and of the flops. */
    double expert_efficiency;
    double packed_efficiency;
    double resident_efficiency;
    double flops_efficiency;
    double expert_layer_s;      /* of a MoE layer before its first expert */
    double layer_s;             /* launch of the rest of a layer */
    double step_s;              /* of a step outside the layers */
    akin_machine_link_t fabric; /* to an accelerator of the same node */
    akin_machine_link_t nic;    /* to another node */
} akin_machine_t;

/** "mi300x" or "h200". \return NULL if there is none of that name. */
const akin_machine_t *akin_machine_find(const char *name);

/** The i-th of the table; NULL from the last on. */
const akin_machine_t *akin_machine_at(unsigned index);

/**
 * The machine, "cpu", of a measurement: what `akin bench step --json` printed,
 * an array with an object of `bench` "step", `bytes`, `seconds` and
 * `reference_seconds`. Memory is as fast as the plain read was; the step's
 * share of that is the efficiency of all kernels. As it ran one token, its
 * flops are taken for all there are, two per weight of two bytes: the time of
 * a batch is an upper bound. The links are of a process on one node, 10 GB/s
 * and 2 us, an assumption.
 *
 * \param[in]  text     JSON, `bytes` long.
 * \param[in]  source   name of its file, for messages.
 * \param[out] machine
 * \param[out] err      names source and key.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: no such measurement.
 */
akin_status_t akin_machine_parse_bench(const char *text, size_t bytes,
                                       const char *source,
                                       akin_machine_t *machine,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The same of a file.
 *
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOT_FOUND, AKIN_ERR_IO
 */
akin_status_t akin_machine_read_bench(const char *path, akin_machine_t *machine,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
