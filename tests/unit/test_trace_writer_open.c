/* Traces begun and resumed: from cut, damaged and foreign files. */
#include "runner.h"
#include "trace_requests.h"

#include "base/log.h"

typedef struct image {
    char *journal;
    char *data;
    size_t journal_bytes;
    size_t data_bytes;
} image_t;

/* What four requests leave when the process is killed. */
static image_t killed_image(void)
{
    image_t image;
    /* The warnings about what is left out are many here. */
    CU_ASSERT_EQUAL(akin_log_configure("error", NULL), AKIN_OK);
    akin_trace_writer_t *writer = begin(trace_path(), 0);
    for (uint32_t i = 0; i < 4; i++)
        append(writer, i);
    akin_trace_writer_destroy(writer);
    image.journal =
        scratch_read(scratch_path("t.json.part"), &image.journal_bytes);
    image.data = scratch_read(scratch_path("t.u8"), &image.data_bytes);
    remove_all();
    return image;
}

/* Rows of the requests 0 to n - 1. */
static size_t rows_until(uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += 3 + i % 6;
    return sum;
}

/* Resume from these files: `left` requests must have survived, no byte of the
 * others, and the trace must come out as if nothing had happened. */
static void resume_from(const char *journal, size_t journal_bytes,
                        const char *data, size_t data_bytes, uint32_t left)
{
    const char *path = trace_path();
    struct stat st;
    scratch_write(scratch_path("t.json.part"), journal, journal_bytes);
    if (data != NULL)
        scratch_write(scratch_path("t.u8"), data, data_bytes);
    akin_trace_writer_t *writer = begin(path, 1);
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_count(writer), left);
    CU_ASSERT_EQUAL_FATAL(stat(scratch_path("t.u8"), &st), 0);
    CU_ASSERT_EQUAL((size_t)st.st_size, rows_until(left) * IDS);
    for (uint32_t i = 0; i < 5; i++) {
        request_t r = {0};
        make_request(i, &r);
        CU_ASSERT_EQUAL(akin_trace_writer_has(writer, r.id) != 0, i < left);
        if (i >= left)
            append(writer, i);
    }
    finish(writer);
    check_trace(path, 5);
    remove_all();
}

/* Is this a place where a line begins or ends, or one of those in between? Each
 * costs some calls that wait for the disk, and inside of a line all are alike.
 */
static int is_cut(const image_t *image, size_t at)
{
    size_t from = at > 2 ? at - 2 : 0;
    size_t end = at + 2 < image->journal_bytes ? at + 2 : image->journal_bytes;
    return at % 7 == 0 || at == image->journal_bytes ||
           memchr(image->journal + from, '\n', end - from) != NULL;
}

static void test_resume_after_cuts(void)
{
    image_t image = killed_image();
    for (size_t cut = 0; cut <= image.journal_bytes; cut++) {
        if (!is_cut(&image, cut))
            continue;
        uint32_t lines = 0;
        for (size_t i = 0; i < cut; i++)
            lines += image.journal[i] == '\n';
        /* Before its first line is whole a journal has no data beside it. */
        resume_from(image.journal, cut, lines > 0 ? image.data : NULL,
                    image.data_bytes, lines > 0 ? lines - 1 : 0);
    }
    /* The rows of the third and fourth request are gone, or not all there. */
    for (size_t cut = rows_until(2) * IDS; cut < rows_until(3) * IDS; cut += 21)
        resume_from(image.journal, image.journal_bytes, image.data, cut, 2);
    resume_from(image.journal, image.journal_bytes, NULL, 0, 0);
    free(image.journal);
    free(image.data);
}

/* After a crash of the machine a file may have its length but not its
 * content: the checksum finds rows that are whole, valid and wrong. */
static void test_resume_damaged(void)
{
    image_t image = killed_image();
    char *row = image.data + rows_until(1) * IDS;
    for (int i = 0; i < TOP_K / 2; i++) {
        char first = row[i];
        row[i] = row[TOP_K - 1 - i];
        row[TOP_K - 1 - i] = first;
    }
    resume_from(image.journal, image.journal_bytes, image.data,
                image.data_bytes, 1);
    memset(image.journal + image.journal_bytes - 20, 0, 20);
    image.journal[image.journal_bytes - 1] = '\n';
    memset(row, 0, IDS);
    resume_from(image.journal, image.journal_bytes, image.data,
                image.data_bytes, 1);
    free(image.journal);
    free(image.data);
}

static void refuse_create(const akin_trace_writer_params_t *params,
                          akin_status_t status, const char *text)
{
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_trace_writer_create(params, &writer, &err), status);
    CU_ASSERT_PTR_NULL(writer);
    if (strstr(err.text, text) == NULL) {
        printf("\n  \"%s\" is not in \"%s\"\n", text, err.text);
        CU_FAIL("message");
    }
}

static void test_bad_creates(void)
{
    const char *path = trace_path();
    akin_trace_writer_params_t params = params_of(path);
    params.shape.top_k = 17;
    refuse_create(&params, AKIN_ERR_INVALID, "top_k is 17 of 16");
    params = params_of(path);
    params.shape.n_layers = 0;
    refuse_create(&params, AKIN_ERR_INVALID, "0 layers");
    params = params_of(path);
    params.model = "\xff";
    refuse_create(&params, AKIN_ERR_INVALID, "UTF-8");
    params = params_of("/nonexistent/t.json");
    refuse_create(&params, AKIN_ERR_NOT_FOUND, "/nonexistent/t.json.part");

    /* Nothing that is there is written over. */
    params = params_of(path);
    scratch_write(path, "x", 1);
    refuse_create(&params, AKIN_ERR_EXISTS, "t.json: exists already");
    params.resume = 1;
    refuse_create(&params, AKIN_ERR_EXISTS, "t.json: exists already");
    remove_all();
    params.path = trace_path();
    scratch_write(scratch_path("t.u8"), "x", 1);
    refuse_create(&params, AKIN_ERR_EXISTS, "t.u8: exists already");
    CU_ASSERT_EQUAL(access(scratch_path("t.json.part"), F_OK), -1);
    remove_all();
    for (int line = 0; line < 2; line++) {
        size_t bytes;
        params.path = trace_path();
        scratch_write(scratch_path("t.json.part"), "my own notes\n",
                      line ? 13 : 5);
        refuse_create(&params, AKIN_ERR_FORMAT, "not the journal of a trace");
        char *text = scratch_read(scratch_path("t.json.part"), &bytes);
        CU_ASSERT_EQUAL(bytes, line ? 13 : 5);
        free(text);
        remove_all();
    }
}

static void test_foreign_journals(void)
{
    const char *path = trace_path();
    akin_trace_writer_t *writer = begin(path, 0);
    append(writer, 0);
    akin_trace_writer_params_t params = params_of(path);
    refuse_create(&params, AKIN_ERR_EXISTS, "--resume");
    params.resume = 1;
    refuse_create(&params, AKIN_ERR_BUSY, "another process");
    akin_trace_writer_destroy(writer);
    params.model = "other";
    refuse_create(&params, AKIN_ERR_FORMAT,
                  "of the model \"tiny \"moe\"\" was begun there, not of "
                  "\"other\"");
    params = params_of(path);
    params.resume = 1;
    params.shape.top_k = 2;
    refuse_create(&params, AKIN_ERR_FORMAT,
                  "3 layers, 16 experts, top_k 4, id_bytes 1 was begun there, "
                  "this one has 3, 16, 2 and 1");
    params = params_of(path);
    params.resume = 1;
    params.prompt_stands_in = 1;
    refuse_create(&params, AKIN_ERR_FORMAT, "prompts that were recorded");
    remove_all();
}

static const runner_test_t tests[] = {
    {"resume after cuts", test_resume_after_cuts},
    {"resume of damaged files", test_resume_damaged},
    {"bad creates", test_bad_creates},
    {"foreign journals", test_foreign_journals},
};

RUNNER_MAIN("trace writer, beginning", tests)
