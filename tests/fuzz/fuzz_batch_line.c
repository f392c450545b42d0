/* Fuzz of batch lines: input of any bytes to requests or error lines, and
 * those lines back through a resume. */
#include "fuzz.h"
#include "roles/batch_format.h"
#include "roles/batch_output.h"
#include "roles/batch_parse.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES 4096

static akin_tokenizer_t *tokenizer;
static akin_batch_format_t *formatter;
static char input_path[64];
static char output_path[64];

static void remove_files(void)
{
    (void)unlink(input_path);
    (void)unlink(output_path);
    akin_batch_format_destroy(formatter);
    akin_tokenizer_destroy(tokenizer);
}

static void set_up(void)
{
    akin_error_t err = {{0}};
    if (akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/tokenizer.json",
                            &tokenizer, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
    const akin_batch_format_params_t params = {.model = "tiny-moe",
                                               .tokenizer = tokenizer};
    if (akin_batch_format_create(&params, &formatter) != AKIN_OK)
        abort();
    /* In memory, where a sync costs nothing. */
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(input_path, sizeof(input_path), "%s/akin-fuzz-in-%ld",
                   folder, (long)getpid());
    (void)snprintf(output_path, sizeof(output_path), "%s/akin-fuzz-out-%ld",
                   folder, (long)getpid());
    (void)atexit(remove_files);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    (void)close(fd);
}

/* What the request promises its users. */
static void check_request(const akin_request_t *request)
{
    if (request->n_prompt == 0 || request->max_tokens == 0 ||
        request->n_prompt + request->max_tokens > 1024 ||
        request->custom_id[0] == '\0' ||
        akin_sampling_check(&request->sampling, NULL) != AKIN_OK)
        abort();
    for (uint32_t i = 0; i < request->n_prompt; i++)
        if (request->prompt[i] >= 4096)
            abort();
}

/* Every line gives one line of output that is valid JSON. */
static void check_line(FILE *output, const akin_request_t *request,
                       const akin_request_error_t *error)
{
    const char *line;
    size_t bytes;
    akin_status_t status;
    if (request != NULL) {
        akin_token_logprob_t logprobs[1024];
        memset(logprobs, 0, sizeof(logprobs));
        const akin_result_t result = {.tokens = request->prompt,
                                      .n_tokens = request->n_prompt,
                                      .text = "x",
                                      .text_bytes = 1,
                                      .logprobs = logprobs};
        status = akin_batch_format_result(formatter, request, &result, &line,
                                          &bytes);
    } else {
        status = akin_batch_format_error(formatter, error, &line, &bytes);
    }
    if (status != AKIN_OK || memchr(line, '\n', bytes) != line + bytes - 1)
        abort();
    json_t *json =
        json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json == NULL)
        abort();
    json_decref(json);
    if (fwrite(line, 1, bytes, output) != bytes)
        abort();
}

/* Runs over the input; returns the lines that had to be answered. */
static uint64_t run(FILE *output, akin_id_set_t *done)
{
    static const akin_request_limits_t model = {
        .model = "tiny-moe", .vocab_size = 4096, .max_positions = 1024};
    akin_request_limits_t limits = model;
    limits.tokenizer = tokenizer;
    akin_batch_input_t *input;
    akin_batch_line_t line;
    akin_id_set_t *seen;
    uint64_t n = 0;
    if (akin_id_set_create(&seen) != AKIN_OK ||
        akin_batch_input_open(input_path, MAX_LINE_BYTES, &input, NULL) !=
            AKIN_OK)
        abort();
    while (akin_batch_input_next(input, &line, NULL) == AKIN_OK) {
        akin_request_t *request;
        akin_request_error_t error;
        int is_done;
        if (akin_batch_parse(&limits, &line, &request, &error) == AKIN_OK)
            check_request(request);
        akin_status_t status =
            akin_batch_admit(seen, done, &request, &error, &is_done);
        if (status != AKIN_OK && status != AKIN_ERR_EXISTS)
            abort();
        n += !is_done;
        if (output != NULL && !is_done)
            check_line(output, request, &error);
        akin_request_destroy(request);
    }
    akin_batch_input_close(input);
    akin_id_set_destroy(seen);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    if (tokenizer == NULL)
        set_up();
    write_file(input_path, data, size_bytes);
    FILE *file = fopen(output_path, "w");
    if (file == NULL)
        abort();
    uint64_t n = run(file, NULL);
    if (fclose(file) != 0)
        abort();

    /* A resume of the finished run finds every line done. */
    akin_id_set_t *done;
    akin_batch_output_t *output;
    akin_batch_resume_t found;
    akin_error_t err = {{0}};
    const akin_batch_output_params_t params = {.path = output_path,
                                               .resume = 1};
    if (akin_id_set_create(&done) != AKIN_OK)
        abort();
    if (akin_batch_output_open(&params, done, &found, &output, &err) !=
        AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
    if (found.n_lines != n || found.torn_bytes != 0 || run(NULL, done) != 0)
        abort();
    if (akin_batch_output_close(output, &err) != AKIN_OK)
        abort();
    akin_id_set_destroy(done);

    /* And the bytes as an output file of somebody: any verdict but a crash. */
    write_file(output_path, data, size_bytes);
    if (akin_id_set_create(&done) != AKIN_OK)
        abort();
    if (akin_batch_output_open(&params, done, NULL, &output, &err) == AKIN_OK &&
        akin_batch_output_close(output, &err) != AKIN_OK)
        abort();
    akin_id_set_destroy(done);
    return 0;
}
