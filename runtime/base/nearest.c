/* Nearest name by restricted Damerau-Levenshtein distance. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

/* ASCII only: the result must not depend on the locale. */
static int fold(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t akin_nearest_distance(const char *a, const char *b)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n >= AKIN_NEAREST_BYTES || m >= AKIN_NEAREST_BYTES)
        return SIZE_MAX;
    /* Row i of the table is rows[i % 3]; a swap looks two rows back. */
    size_t rows[3][AKIN_NEAREST_BYTES];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t differ = fold(a[i - 1]) != fold(b[j - 1]);
            row[j] =
                min_of(min_of(above[j], row[j - 1]) + 1, above[j - 1] + differ);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = min_of(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void akin_nearest_init(akin_nearest_t *nearest, const char *word)
{
    nearest->word = word;
    nearest->distance = SIZE_MAX;
    nearest->name[0] = '\0';
}

void akin_nearest_offer(akin_nearest_t *nearest, const char *name, size_t bytes)
{
    if (bytes == 0 || bytes >= AKIN_NEAREST_BYTES)
        return;
    char copy[AKIN_NEAREST_BYTES];
    memcpy(copy, name, bytes);
    copy[bytes] = '\0';
    size_t length = strlen(nearest->word);
    size_t limit = length / 3 > 1 ? length / 3 : 1;
    size_t distance = akin_nearest_distance(nearest->word, copy);
    if (distance > limit || distance >= length || distance >= nearest->distance)
        return;
    nearest->distance = distance;
    memcpy(nearest->name, copy, bytes + 1);
}

const char *akin_nearest_name(const char *word, const char *const *names,
                              size_t n)
{
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, word);
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t before = nearest.distance;
        akin_nearest_offer(&nearest, names[i], strlen(names[i]));
        if (nearest.distance != before)
            best = names[i];
    }
    return best;
}
