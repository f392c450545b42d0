/* Log: leveled lines by subsystem on stderr; stdout belongs to results. */
#ifndef AKIN_BASE_LOG_H
#define AKIN_BASE_LOG_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_log_level {
    AKIN_LOG_ERROR,
    AKIN_LOG_WARN,
    AKIN_LOG_INFO,
    AKIN_LOG_DEBUG,
    AKIN_LOG_TRACE
} akin_log_level_t;

/* One row per subsystem: the word after AKIN_LOG_SUB_, its name in AKIN_LOG. */
#define AKIN_LOG_SUBSYSTEMS(row)                                               \
    row(BASE, "base") row(NET, "net") row(KV, "kv") row(MATH, "math")          \
        row(ENGINE, "engine") row(EP, "ep") row(ROUTING, "routing")            \
            row(ROLES, "roles") row(LAUNCH, "launch")

typedef enum akin_log_subsystem {
#define AKIN_LOG_SUB(name, text) AKIN_LOG_SUB_##name,
    AKIN_LOG_SUBSYSTEMS(AKIN_LOG_SUB)
#undef AKIN_LOG_SUB
        AKIN_LOG_SUB_COUNT
} akin_log_subsystem_t;

/**
 * Set the levels from a specification such as "info,kv=trace,net=debug": a
 * bare level is for every subsystem, later items win. Until the first call
 * every subsystem logs at "warn".
 *
 * \param[in]  spec  the text of AKIN_LOG; NULL or "" changes nothing.
 * \param[out] err   names the bad item, the levels and the subsystems.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: an unknown level or subsystem; nothing was changed.
 */
akin_status_t akin_log_configure(const char *spec,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Say who writes: from now on every line carries this rank and role.
 *
 * \param[in] rank  rank in the job; negative: no rank is printed.
 * \param[in] role  "router", "prefill", "decode", ...; copied, cut at 15 bytes.
 */
void akin_log_identify(int rank, const char *role);

/**
 * Whether a line at this level would be written; cheap, any thread.
 *
 * \return non-zero if it would.
 */
int akin_log_enabled(akin_log_subsystem_t subsystem, akin_log_level_t level);

/**
 * Write one line: time, level, rank, role, subsystem, text. The line leaves in
 * one write(2), so that lines of several ranks do not mix.
 */
void akin_log_write(akin_log_subsystem_t subsystem, akin_log_level_t level,
                    const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define AKIN_LOG(subsystem, level, ...)                                        \
    do {                                                                       \
        if (akin_log_enabled(AKIN_LOG_SUB_##subsystem, AKIN_LOG_##level))      \
            akin_log_write(AKIN_LOG_SUB_##subsystem, AKIN_LOG_##level,         \
                           __VA_ARGS__);                                       \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
