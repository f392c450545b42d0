/* Id set: a hash set of Concurrency Kit over entries that lie in chunks. */
#include "roles/id_set.h"

#include <ck_hs.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define CHUNK_ENTRIES 1024
#define FIRST_CAPACITY 1024

/* Seeds of the two name spaces. */
enum { SEED_ID = 1, SEED_LINE = 2 };

typedef struct entry {
    XXH128_hash_t hash;
    uint64_t line;
} entry_t;

typedef struct chunk {
    struct chunk *next;
    size_t used;
    entry_t entries[CHUNK_ENTRIES];
} chunk_t;

struct akin_id_set {
    ck_hs_t table; /* of entry_t */
    chunk_t *chunks;
    uint64_t size;
};

static void *table_malloc(size_t bytes)
{
    return malloc(bytes);
}

static void *table_realloc(void *p, size_t old_bytes, size_t bytes, bool defer)
{
    (void)old_bytes;
    (void)defer;
    return realloc(p, bytes);
}

/* One thread owns the set, so that nothing need be deferred. */
static void table_free(void *p, size_t bytes, bool defer)
{
    (void)bytes;
    (void)defer;
    free(p);
}

static struct ck_malloc table_memory = {
    .malloc = table_malloc, .realloc = table_realloc, .free = table_free};

static unsigned long table_hash(const void *key, unsigned long seed)
{
    (void)seed;
    return (unsigned long)((const entry_t *)key)->hash.low64;
}

static bool table_compare(const void *a, const void *b)
{
    return XXH128_isEqual(((const entry_t *)a)->hash,
                          ((const entry_t *)b)->hash) != 0;
}

akin_status_t akin_id_set_create(akin_id_set_t **set_p)
{
    *set_p = NULL;
    akin_id_set_t *set = calloc(1, sizeof(*set));
    if (set == NULL)
        return AKIN_ERR_NOMEM;
    if (!ck_hs_init(&set->table, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT,
                    table_hash, table_compare, &table_memory, FIRST_CAPACITY,
                    0)) {
        free(set);
        return AKIN_ERR_NOMEM;
    }
    *set_p = set;
    return AKIN_OK;
}

void akin_id_set_destroy(akin_id_set_t *set)
{
    if (set == NULL)
        return;
    ck_hs_destroy(&set->table);
    while (set->chunks != NULL) {
        chunk_t *next = set->chunks->next;
        free(set->chunks);
        set->chunks = next;
    }
    free(set);
}

static akin_status_t add(akin_id_set_t *set, XXH128_hash_t hash, uint64_t line,
                         uint64_t *first_p)
{
    if (set->chunks == NULL || set->chunks->used == CHUNK_ENTRIES) {
        chunk_t *chunk = malloc(sizeof(*chunk));
        if (chunk == NULL)
            return AKIN_ERR_NOMEM;
        chunk->next = set->chunks;
        chunk->used = 0;
        set->chunks = chunk;
    }
    entry_t *entry = &set->chunks->entries[set->chunks->used];
    *entry = (entry_t){hash, line};
    unsigned long h = ck_hs_hash(&set->table, entry);
    const entry_t *first = ck_hs_get(&set->table, h, entry);
    if (first != NULL) {
        if (first_p != NULL)
            *first_p = first->line;
        return AKIN_ERR_EXISTS;
    }
    if (!ck_hs_put(&set->table, h, entry))
        return AKIN_ERR_NOMEM;
    set->chunks->used++;
    set->size++;
    return AKIN_OK;
}

static int has(akin_id_set_t *set, XXH128_hash_t hash)
{
    entry_t key = {hash, 0};
    return ck_hs_get(&set->table, ck_hs_hash(&set->table, &key), &key) != NULL;
}

static XXH128_hash_t hash_id(const char *custom_id)
{
    return XXH3_128bits_withSeed(custom_id, strlen(custom_id), SEED_ID);
}

static XXH128_hash_t hash_line(uint64_t line)
{
    return XXH3_128bits_withSeed(&line, sizeof(line), SEED_LINE);
}

akin_status_t akin_id_set_add(akin_id_set_t *set, const char *custom_id,
                              uint64_t line, uint64_t *first_p)
{
    return add(set, hash_id(custom_id), line, first_p);
}

akin_status_t akin_id_set_add_line(akin_id_set_t *set, uint64_t line)
{
    return add(set, hash_line(line), line, NULL);
}

int akin_id_set_has(akin_id_set_t *set, const char *custom_id)
{
    return has(set, hash_id(custom_id));
}

int akin_id_set_has_line(akin_id_set_t *set, uint64_t line)
{
    return has(set, hash_line(line));
}

uint64_t akin_id_set_size(akin_id_set_t *set)
{
    return set->size;
}
