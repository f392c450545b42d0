/* Warmer: one thread per start, which ends when it is done or stopped. */
#include "roles/warmer.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct akin_warmer {
    const akin_engine_t *engine;
    void (*wake)(void *arg);
    void *arg;
    uint32_t layer;
    uint8_t *experts; /* [n_experts] */
    uint32_t n_experts;
    pthread_t thread;
    int has_thread;
    atomic_int is_stopping;
    atomic_int is_done;
};

akin_status_t akin_warmer_create(const akin_engine_t *engine,
                                 void (*wake)(void *arg), void *arg,
                                 akin_warmer_t **warmer_p)
{
    *warmer_p = NULL;
    akin_warmer_t *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return AKIN_ERR_NOMEM;
    w->engine = engine;
    w->wake = wake;
    w->arg = arg;
    *warmer_p = w;
    return AKIN_OK;
}

static void stop(akin_warmer_t *w)
{
    if (!w->has_thread)
        return;
    atomic_store(&w->is_stopping, 1);
    (void)pthread_join(w->thread, NULL);
    w->has_thread = 0;
}

void akin_warmer_destroy(akin_warmer_t *warmer)
{
    if (warmer == NULL)
        return;
    stop(warmer);
    free(warmer->experts);
    free(warmer);
}

static void *run(void *arg)
{
    akin_warmer_t *w = arg;
    akin_thread_set_name("akin-warmer");
    for (uint32_t e = 0; e < w->n_experts; e++) {
        if (atomic_load(&w->is_stopping))
            return NULL;
        if (w->experts[e] != 0)
            akin_engine_touch_expert(w->engine, w->layer, e);
    }
    atomic_store(&w->is_done, 1);
    w->wake(w->arg);
    return NULL;
}

akin_status_t akin_warmer_start(akin_warmer_t *w, uint32_t layer,
                                const uint8_t *experts, uint32_t n_experts)
{
    stop(w);
    uint8_t *copy = realloc(w->experts, n_experts > 0 ? n_experts : 1);
    if (copy == NULL)
        return AKIN_ERR_NOMEM;
    memcpy(copy, experts, n_experts);
    w->experts = copy;
    w->n_experts = n_experts;
    w->layer = layer;
    atomic_store(&w->is_stopping, 0);
    atomic_store(&w->is_done, 0);
    w->has_thread = pthread_create(&w->thread, NULL, run, w) == 0;
    return w->has_thread ? AKIN_OK : AKIN_ERR_NOMEM;
}

int akin_warmer_is_done(const akin_warmer_t *warmer)
{
    return atomic_load(&warmer->is_done);
}
