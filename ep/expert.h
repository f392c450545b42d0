/* Expert: the three weight matrices of one expert. */
#ifndef AKIN_EP_EXPERT_H
#define AKIN_EP_EXPERT_H

#include "math/matrix.h"

typedef struct akin_expert {
    akin_matrix_t gate; /* [moe_intermediate][hidden] */
    akin_matrix_t up;   /* [moe_intermediate][hidden] */
    akin_matrix_t down; /* [hidden][moe_intermediate] */
} akin_expert_t;

#endif
