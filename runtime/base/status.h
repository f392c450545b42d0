/* Status codes: one negative enum that every fallible call returns. */
#ifndef AKIN_BASE_STATUS_H
#define AKIN_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One row per code: name, text. Codes count down from 0 in this order, which
 * is part of the wire format: append, never reorder.
 */
#define AKIN_STATUS_TABLE(row)                                                 \
    row(OK, "success") row(ERR_NOMEM, "out of memory")                         \
        row(ERR_IO, "input/output error") row(ERR_INVALID, "invalid argument") \
            row(ERR_CONFIG, "invalid configuration") row(ERR_FORMAT,           \
                                                         "malformed data")     \
                row(ERR_UNSUPPORTED, "not supported") row(                     \
                    ERR_RANGE, "out of range") row(ERR_NOT_FOUND, "not found") \
                    row(ERR_EXISTS, "already exists") row(ERR_BUSY, "busy")    \
                        row(ERR_FULL, "no room")                               \
                            row(ERR_TIMEOUT, "deadline exceeded")              \
                                row(ERR_PEER, "peer lost")                     \
                                    row(ERR_REFUSED, "block refused")          \
                                        row(ERR_CANCELED, "canceled")          \
                                            row(ERR_MPI, "MPI error")          \
                                                row(ERR_UCX, "UCX error")      \
                                                    row(ERR_INTERNAL,          \
                                                        "internal error")

enum {
#define AKIN_STATUS_ORDINAL(name, text) AKIN_ORDINAL_##name,
    AKIN_STATUS_TABLE(AKIN_STATUS_ORDINAL)
#undef AKIN_STATUS_ORDINAL
        AKIN_STATUS_COUNT
};

typedef enum akin_status {
#define AKIN_STATUS_CODE(name, text) AKIN_##name = -AKIN_ORDINAL_##name,
    AKIN_STATUS_TABLE(AKIN_STATUS_CODE)
#undef AKIN_STATUS_CODE
} akin_status_t;

#define AKIN_MUST_CHECK __attribute__((warn_unused_result))

/**
 * Text of a status code.
 *
 * \param[in] status  any value; unknown ones give "unknown status".
 * \return a static string, never NULL.
 */
const char *akin_status_string(akin_status_t status);

/**
 * The status that stands for an errno value.
 *
 * \param[in] errno_value  errno of a failed call.
 * \return never AKIN_OK; AKIN_ERR_IO where nothing fits better.
 */
akin_status_t akin_status_from_errno(int errno_value);

#ifdef __cplusplus
}
#endif

#endif
