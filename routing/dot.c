/* Dot product of float arrays. */
#include "routing/dot.h"

#include "routing/dot_block.h"
#include "routing/lanes.h"

AKINI_CLONES double akini_dot(const float *a, const float *b, size_t n)
{
    double sum;
    akini_dot_block(a, &b, 1, n, &sum);
    return sum;
}

AKINI_CLONES void akini_dot_rows(const float *a, const float *rows,
                                 size_t stride, const uint32_t *picked,
                                 uint32_t n_rows, size_t n, double *sums)
{
    const float *block[AKINI_DOT_ROWS];
    for (uint32_t first = 0; first < n_rows; first += AKINI_DOT_ROWS) {
        uint32_t n_block =
            n_rows - first < AKINI_DOT_ROWS ? n_rows - first : AKINI_DOT_ROWS;
        for (uint32_t r = 0; r < n_block; r++) {
            size_t row = picked != NULL ? picked[first + r] : first + r;
            block[r] = rows + row * stride;
        }
        switch (n_block) {
        case 1:
            akini_dot_block(a, block, 1, n, sums + first);
            break;
        case 2:
            akini_dot_block(a, block, 2, n, sums + first);
            break;
        case 3:
            akini_dot_block(a, block, 3, n, sums + first);
            break;
        default:
            akini_dot_block(a, block, AKINI_DOT_ROWS, n, sums + first);
            break;
        }
    }
}
