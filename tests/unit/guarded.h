/* Guarded memory: bytes that end right before a page nobody may touch. */
#ifndef AKIN_TESTS_UNIT_GUARDED_H
#define AKIN_TESTS_UNIT_GUARDED_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *end; /* first byte of the forbidden page */
} guarded_t;

/** Room for at least max_bytes before the page. */
static inline guarded_t guarded_create(size_t max_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    guarded_t g = {.map_bytes = (max_bytes + page - 1) / page * page + page};
    void *map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        abort();
    g.map = map;
    g.end = g.map + g.map_bytes - page;
    if (mprotect(g.end, page, PROT_NONE) != 0)
        abort();
    return g;
}

static inline void guarded_destroy(guarded_t *g)
{
    (void)munmap(g->map, g->map_bytes);
}

#endif
