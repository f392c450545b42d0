/* Machine: the accelerators whose figures are published. */
#include "routing/machine.h"

#include <string.h>

/*
 * The MoE layer of "mi300x" is a line through two published points of
 * Qwen3-30B-A3B (experts of 9,437,184 bytes) with vLLM on MI300X: from 16 to
 * 128 active experts it costs 4.7 times as much, and with 100 it lasts
 * 0.45 ms. With t0 + 128 a = 4.7 (t0 + 16 a): t0 = 52.8 / 3.7 a, hence
 * a = 0.45 ms / (100 + 52.8 / 3.7) = 3.938 us and t0 = 56.20 us. An expert in
 * 3.938 us is 2.396 TB/s, 0.4521 of the memory's 5.3 TB/s.
 *
 * Two numbers come from the published times per token of whole jobs (8P16D,
 * 20 to 100 requests/s): step_s (the scheduler, the sampler, the host) from
 * the ten cells of Qwen3-30B-A3B and Gemma-4-26B-A4B together, and
 * packed_efficiency from the five of GPT-OSS-120B, whose MXFP4 experts need
 * some 13.3 us each. Set to what such kernels usually do, for want of a
 * publication, are resident_efficiency, flops_efficiency and layer_s (some
 * eight kernels around attention).
 */
static const akin_machine_t machines[] = {
    /* AMD Instinct MI300X data sheet: 5.3 TB/s, 1,307.4 TFLOPS of dense
     * bfloat16, seven Infinity Fabric links of 64 GB/s per direction. One
     * 400 Gb/s NDR InfiniBand NIC per GPU. The latencies are assumptions. */
    {.name = "mi300x",
     .memory_bytes_per_s = 5.3e12,
     .flops_per_s = 1307.4e12,
     .expert_efficiency = 0.4521,
     .packed_efficiency = 0.188,
     .resident_efficiency = 0.7,
     .flops_efficiency = 0.5,
     .expert_layer_s = 56.2e-6,
     .layer_s = 20e-6,
     .step_s = 3e-3,
     .fabric = {448e9, 5e-6},
     .nic = {50e9, 5e-6}},
    /* NVIDIA H200 SXM data sheet: 4.8 TB/s, 989 TFLOPS of dense bfloat16,
     * NVLink of 450 GB/s per direction. Efficiencies and overheads are those
     * of MI300X, since none is published for this workload: an assumption. */
    {.name = "h200",
     .memory_bytes_per_s = 4.8e12,
     .flops_per_s = 989e12,
     .expert_efficiency = 0.4521,
     .packed_efficiency = 0.188,
     .resident_efficiency = 0.7,
     .flops_efficiency = 0.5,
     .expert_layer_s = 56.2e-6,
     .layer_s = 20e-6,
     .step_s = 3e-3,
     .fabric = {450e9, 5e-6},
     .nic = {50e9, 5e-6}},
};

#define N_MACHINES (sizeof(machines) / sizeof(machines[0]))

const akin_machine_t *akin_machine_find(const char *name)
{
    for (size_t i = 0; i < N_MACHINES; i++)
        if (strcmp(machines[i].name, name) == 0)
            return &machines[i];
    return NULL;
}

const akin_machine_t *akin_machine_at(unsigned index)
{
    return index < N_MACHINES ? &machines[index] : NULL;
}
