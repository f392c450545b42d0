/* Route generator: what its files share. */
#ifndef AKIN_ROUTING_ROUTE_GENERATOR_IMPL_H
#define AKIN_ROUTING_ROUTE_GENERATOR_IMPL_H

#include "routing/route_generator.h"
#include "routing/route_tables.h"

struct akin_route_generator {
    akin_route_generator_params_t params; /* workload is not kept */
    akin_route_workload_t workload;
    akini_route_tables_t tables;
    uint32_t n_slots;
    uint32_t near; /* of 256 choices, those of the handful */
};

#endif
