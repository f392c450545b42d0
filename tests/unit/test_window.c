/* Window: entries, their edges, and vectors that stay while pinned. */
#include "runner.h"

#include "routing/window.h"

#include "base/rng.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

enum { DIM = 3, CAPACITY = 8 };

static void append(akini_window_t *window, int64_t time_ns)
{
    const float signature[DIM] = {(float)time_ns, 1.0f, -(float)time_ns};
    akini_window_append(window, time_ns, signature);
}

static int64_t time_of(const akini_window_t *window, uint32_t i)
{
    return window->entries[(window->first + i) % window->capacity].time_ns;
}

static void test_edges(void)
{
    akini_window_t window;
    CU_ASSERT_EQUAL_FATAL(akini_window_init(&window, CAPACITY, DIM), AKIN_OK);
    append(&window, 10);
    append(&window, 20);
    append(&window, 20);
    append(&window, 30);
    akini_window_drop(&window, 10);
    CU_ASSERT_EQUAL(window.n_entries, 4);
    akini_window_drop(&window, 11);
    CU_ASSERT_EQUAL(window.n_entries, 3);
    CU_ASSERT_EQUAL(time_of(&window, 0), 20);
    akini_window_drop(&window, 21);
    CU_ASSERT_EQUAL(window.n_entries, 1);
    akini_window_drop(&window, INT64_MAX);
    CU_ASSERT_EQUAL(window.n_entries, 0);
    CU_ASSERT_EQUAL(window.n_free, 2 * CAPACITY);
    akini_window_cleanup(&window);
}

static void test_full(void)
{
    akini_window_t window;
    CU_ASSERT_EQUAL_FATAL(akini_window_init(&window, CAPACITY, DIM), AKIN_OK);
    for (int64_t t = 1; t <= 3 * CAPACITY; t++)
        append(&window, t);
    CU_ASSERT_EQUAL(window.n_entries, CAPACITY);
    for (uint32_t i = 0; i < CAPACITY; i++)
        CU_ASSERT_EQUAL(time_of(&window, i), 2 * CAPACITY + 1 + i);
    /* Slots come back last in, first out: no more were ever touched. */
    for (uint32_t slot = CAPACITY; slot < 2 * CAPACITY; slot++)
        CU_ASSERT_EQUAL(akini_window_vector(&window, slot)[1], 0.0f);
    akini_window_cleanup(&window);
}

/* A random life: what is pinned reads the same to the end, and no slot is lost
 * or given twice. */
static void test_pinned(void)
{
    akini_window_t window;
    CU_ASSERT_EQUAL_FATAL(akini_window_init(&window, CAPACITY, DIM), AKIN_OK);
    int64_t pinned_from = 0;
    bool is_pinned = false;
    int n_wrong = 0;
    for (uint64_t i = 1; i <= 20000; i++) {
        uint64_t draw = akin_rng_below(5, 0, i, 40);
        if (draw == 0 && !is_pinned && window.n_entries > 0) {
            akini_window_pin(&window);
            pinned_from = time_of(&window, 0);
            is_pinned = true;
        } else if (draw == 1 && is_pinned) {
            akini_window_unpin(&window);
            is_pinned = false;
        } else if (draw < 12) {
            akini_window_drop(&window, (int64_t)i - (int64_t)draw);
        } else {
            append(&window, (int64_t)i);
        }
        bool taken[2 * CAPACITY] = {false};
        for (uint32_t e = 0; e < window.n_entries; e++) {
            uint32_t at = (window.first + e) % CAPACITY;
            uint32_t slot = window.entries[at].slot;
            n_wrong += taken[slot];
            taken[slot] = true;
            n_wrong += akini_window_vector(&window, slot)[0] !=
                       (float)window.entries[at].time_ns;
        }
        for (uint32_t p = 0; p < window.n_pinned; p++) {
            const float *v = akini_window_vector(&window, window.pinned[p]);
            taken[window.pinned[p]] = true;
            n_wrong += v[0] < (float)pinned_from || v[2] != -v[0];
            n_wrong += p == 0 && v[0] != (float)pinned_from;
        }
        for (uint32_t f = 0; f < window.n_free; f++) {
            n_wrong += taken[window.free_slots[f]];
            taken[window.free_slots[f]] = true;
        }
        for (uint32_t slot = 0; slot < 2 * CAPACITY; slot++)
            n_wrong += !taken[slot];
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    akini_window_cleanup(&window);
}

/* To note a request is part of a decision, which must not wait for the system
 * to find memory: no page is touched for the first time. */
static void test_pages_are_there(void)
{
    enum { ENTRIES = 256, WIDE = 4096, PAGES = 2 * ENTRIES * WIDE / 1024 };
    static float signature[WIDE] = {1.0f};
    akini_window_t window;
    struct rusage before, after;
    CU_ASSERT_EQUAL_FATAL(akini_window_init(&window, ENTRIES, WIDE), AKIN_OK);
    CU_ASSERT_EQUAL(getrusage(RUSAGE_SELF, &before), 0);
    for (int64_t i = 0; i < ENTRIES; i++)
        akini_window_append(&window, i, signature);
    CU_ASSERT_EQUAL(getrusage(RUSAGE_SELF, &after), 0);
    CU_ASSERT(after.ru_minflt - before.ru_minflt < PAGES / 16);
    akini_window_cleanup(&window);
}

static const runner_test_t tests[] = {
    {"edges", test_edges},
    {"full", test_full},
    {"pinned", test_pinned},
    {"pages are there", test_pages_are_there},
};

RUNNER_MAIN("window", tests)
