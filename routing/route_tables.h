/* Route tables: weighted draws of an expert in constant time, one table per
 * topic and layer. */
#ifndef AKIN_ROUTING_ROUTE_TABLES_H
#define AKIN_ROUTING_ROUTE_TABLES_H

#include "routing/route_workload.h"

#include <stddef.h>

/* A column of Walker's alias method ("An efficient method for generating
 * discrete random variables with general distributions", 1977). */
typedef struct akini_route_column {
    uint16_t threshold; /* of 65,536: the column's own expert below it */
    uint16_t alias;     /* else this one */
} akini_route_column_t;

/* Table n_topics is of the popular part alone. */
typedef struct akini_route_tables {
    uint32_t n_topics; /* of all domains */
    uint32_t n_layers;
    uint32_t n_experts;
    akini_route_column_t *columns; /* [n_topics + 1][n_layers][n_experts] */
} akini_route_tables_t;

/* Makes the tables of a workload. Gives 0, or -1 if memory is out. */
int akini_route_tables_init(akini_route_tables_t *tables,
                            const akin_route_workload_t *workload,
                            uint32_t n_layers, uint32_t n_experts,
                            uint64_t seed);

void akini_route_tables_cleanup(akini_route_tables_t *tables);

/* The expert that 32 uniform bits draw. */
static inline uint16_t akini_route_tables_draw(const akini_route_tables_t *t,
                                               uint32_t topic, uint32_t layer,
                                               uint32_t bits)
{
    const uint64_t product = (uint64_t)bits * t->n_experts;
    const uint32_t column = (uint32_t)(product >> 32);
    const akini_route_column_t *c =
        &t->columns[((size_t)topic * t->n_layers + layer) * t->n_experts +
                    column];
    return (uint32_t)product >> 16 < c->threshold ? (uint16_t)column : c->alias;
}

#endif
