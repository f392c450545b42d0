/* generate: options and result of `akin generate`. */
#ifndef AKIN_LAUNCH_GENERATE_H
#define AKIN_LAUNCH_GENERATE_H

#include "base/error.h"
#include "engine/sampler.h"

#include <stddef.h>
#include <stdint.h>

#define AKIN_GENERATE_TOP 10
#define AKIN_GENERATE_MAX_STOPS 16

/** What the command line asks for; strings are borrowed from argv. */
typedef struct akin_generate_options {
    const char *model_dir;
    const char *text; /* one of these three is set */
    const char *token_ids;
    const char *chat_path;
    uint32_t max_tokens;
    akin_sampling_t sampling;
    const char *stops[AKIN_GENERATE_MAX_STOPS];
    size_t n_stops;
    const char *kernel;
    int n_threads;
    uint32_t block_tokens;
    uint32_t chunk_tokens;
    int ignore_eos;
    int json;
} akin_generate_options_t;

/** What came out; arrays are owned by the result. */
typedef struct akin_generate_result {
    uint32_t *prompt;
    size_t n_prompt;
    uint32_t *tokens;
    size_t n_tokens;
    char *text;
    size_t text_bytes;
    const char *finish_reason; /* "stop" or "length" */
    akin_candidate_t *top;     /* [n_tokens][AKIN_GENERATE_TOP] */
    uint32_t n_top;            /* candidates per token */
    uint16_t *counts;          /* [n_layers][n_experts] over the prompt */
    uint32_t n_layers;
    uint32_t n_experts;
    int64_t load_ns;
    int64_t prefill_ns;
    int64_t decode_ns;
} akin_generate_result_t;

/**
 * Read the command line; leaves the process on --help.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: err says which option.
 */
akin_status_t akin_generate_parse(int argc, char **argv,
                                  akin_generate_options_t *options_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Load the model and generate. Unless options->json is set, text goes to
 * stdout as it comes.
 *
 * \param[out] result_p  for akin_generate_result_cleanup(), also on failure.
 * \return AKIN_OK, or why not: err says it.
 */
akin_status_t akin_generate_run(const akin_generate_options_t *options,
                                akin_generate_result_t *result_p,
                                akin_error_t *err) AKIN_MUST_CHECK;

void akin_generate_result_cleanup(akin_generate_result_t *result);

struct json_t;

/** The result as the object of `--json`; NULL when out of memory. */
struct json_t *akin_generate_result_json(const akin_generate_result_t *result);

#endif
