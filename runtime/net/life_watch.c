/* Life watch: adds up the time that a rank lets pass without a sign. */
#include "net/life_watch.h"

#define LOOKS_PER_LIMIT 4

void akini_life_watch_begin(akini_life_watch_t *watch, int64_t now_ns)
{
    *watch = (akini_life_watch_t){
        .phase = AKINI_LIFE_STARTS,
        .looked_ns = now_ns,
    };
}

int akini_life_watch_look(akini_life_watch_t *watch,
                          const akini_life_look_t *look, int64_t *next_ns_p)
{
    /* Rounded up, so that so many steps make a limit. */
    int64_t step_ns = look->limit_ns / LOOKS_PER_LIMIT +
                      (look->limit_ns % LOOKS_PER_LIMIT > 0);
    int64_t since_ns = look->now_ns - watch->looked_ns;
    watch->looked_ns = look->now_ns;
    *next_ns_p = INT64_MAX;
    if (look->phase != watch->phase || look->limit_ns <= 0 ||
        (look->phase == AKINI_LIFE_SERVES && look->has_beaten)) {
        watch->phase = look->phase;
        watch->passed_ns = 0;
    } else {
        watch->passed_ns += since_ns < step_ns ? since_ns : step_ns;
    }
    if (look->limit_ns <= 0)
        return 0;
    int64_t left_ns = look->limit_ns - watch->passed_ns;
    if (left_ns <= 0) {
        *next_ns_p = step_ns;
        return 1;
    }
    *next_ns_p = left_ns < step_ns ? left_ns : step_ns;
    return 0;
}
