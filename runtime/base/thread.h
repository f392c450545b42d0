/* Thread helpers: names that show in top, gdb and logs. */
#ifndef AKIN_BASE_THREAD_H
#define AKIN_BASE_THREAD_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Name the calling thread.
 *
 * \param[in] name  cut at 15 bytes, which is what Linux keeps.
 */
void akin_thread_set_name(const char *name);

/**
 * Cores that this process may run on (affinity mask), at least 1.
 */
int akin_thread_usable_cores(void);

#ifdef __cplusplus
}
#endif

#endif
