/* Tests of safetensors: headers that are taken and refused, files, lookup. */
#include "engine/safetensors.h"

#include "checkpoint.h"
#include "runner.h"
#include "tensor_image.h"

#include <sys/stat.h>

static akin_status_t check(const char *header, size_t data_bytes,
                           akin_error_t *err)
{
    size_t bytes;
    unsigned char *image = make_image(header, data_bytes, &bytes);
    akin_status_t status =
        akin_tensor_image_check(image, bytes, "dir/m.safetensors", err);
    free(image);
    return status;
}

static void test_headers_taken(void)
{
    static const struct {
        const char *header;
        size_t data_bytes;
    } cases[] = {
        {"{}", 0},
        {"{}   ", 0},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0},
        {"{" F32("a", "[2,3]", 0, 24) "}", 24},
        /* Header order is not data order; the empty tensor lies between. */
        {"{" F32("b", "[1]", 8, 12) "," F32("a", "[2]", 0,
                                            8) "," F32("e", "[0,7]", 8, 8) "}",
         12},
        {"{" F32("scalar", "[]", 0, 4) "}", 4},
        {"{" F32("e", "[3,0]", 0, 0) "}", 0},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2},
        {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}",
         3},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3],"
         "\"more\":1}}",
         3},
        {"{" F32("d8", "[1,1,1,1,1,1,1,2]", 0, 8) "}", 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        akin_status_t status =
            check(cases[i].header, cases[i].data_bytes, &err);
        if (status != AKIN_OK)
            (void)fprintf(stderr, "%s: %s\n", cases[i].header, err.text);
        CU_ASSERT_EQUAL(status, AKIN_OK);
    }
}

static void test_headers_refused(void)
{
    static const struct {
        const char *header;
        size_t data_bytes;
        akin_status_t status;
        const char *piece;
    } cases[] = {
        /* JSON. */
        {"", 0, AKIN_ERR_FORMAT, "does not start with '{'"},
        {" {}", 0, AKIN_ERR_FORMAT, "does not start with '{'"},
        {"[]", 0, AKIN_ERR_FORMAT, "does not start with '{'"},
        {"{", 0, AKIN_ERR_FORMAT, "dir/m.safetensors:1:"},
        {"{}x", 0, AKIN_ERR_FORMAT, "dir/m.safetensors:1:"},
        {"{\"\xff\":1}", 0, AKIN_ERR_FORMAT, "dir/m.safetensors:1:"},
        {"{\"a\\u0000b\":{}}", 0, AKIN_ERR_FORMAT, "dir/m.safetensors:1:"},
        {"{" F32("a", "[1]", 0, 4) "," F32("a", "[1]", 4, 8) "}", 8,
         AKIN_ERR_FORMAT, "duplicate object key"},
        {"{\"__metadata__\":[]}", 0, AKIN_ERR_FORMAT, "\"__metadata__\" must"},
        {"{\"__metadata__\":{\"k\":1}}", 0, AKIN_ERR_FORMAT,
         "\"__metadata__\": \"k\" must be a string"},
        /* Fields. */
        {"{\"t\":7}", 0, AKIN_ERR_FORMAT, "tensor \"t\": \"dtype\" must"},
        {"{\"t\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"dtype\" must"},
        {"{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
         AKIN_ERR_FORMAT, "tensor \"t\": \"shape\" must"},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"data_offsets\" must"},
        {"{\"t\":{\"dtype\":\"bf16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         AKIN_ERR_UNSUPPORTED, "tensor \"t\" has the unknown dtype \"bf16\""},
        {"{" F32("t", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, AKIN_ERR_UNSUPPORTED,
         "tensor \"t\" has 9 dimensions"},
        {"{" F32("t", "[1,-1]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\"[1] must be a whole number"},
        {"{" F32("t", "[1.0]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\"[0] must be a whole number"},
        {"{" F32("t", "[true]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\"[0] must be a whole number"},
        {"{" F32("t", "[18446744073709551617]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "dir/m.safetensors:1:"},
        {"{" F32("t", "[1]", -4, 0) "}", 0, AKIN_ERR_FORMAT,
         "tensor \"t\": \"data_offsets\" must"},
        {"{" F32("t", "[1]", 0.0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"data_offsets\" must"},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,2,4]}}",
         4, AKIN_ERR_FORMAT, "tensor \"t\": \"data_offsets\" must"},
        /* Sizes: 2^62 elements, 2^61 bytes twice, 3 half bytes. */
        {"{" F32("t", "[4611686018427387904]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\" and dtype F32 make no whole number of bytes"},
        {"{" F32("t", "[4294967296,4294967296]", 0, 0) "}", 0, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\" and dtype F32 make no whole number of bytes"},
        {"{\"t\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
         AKIN_ERR_FORMAT, "tensor \"t\": \"shape\" and dtype F4 make no whole"},
        {"{" F32("t", "[2]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\" and dtype F32 ask for 8 bytes, "
         "\"data_offsets\" [0, 4] give 4"},
        {"{" F32("t", "[0]", 0, 4) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"shape\" and dtype F32 ask for 0 bytes"},
        /* Places. */
        {"{" F32("t", "[1]", 4, 0) "}", 4, AKIN_ERR_FORMAT,
         "tensor \"t\": \"data_offsets\" [4, 0] run backwards"},
        {"{" F32("t", "[2]", 0, 8) "}", 7, AKIN_ERR_FORMAT,
         "tensor \"t\": \"data_offsets\" [0, 8] end beyond the file"},
        {"{" F32("t", "[1]", 9223372036854775803, 9223372036854775807) "}", 4,
         AKIN_ERR_FORMAT, "end beyond the file"},
        {"{" F32("a", "[2]", 0, 8) "," F32("t", "[2]", 4, 12) "}", 12,
         AKIN_ERR_FORMAT, "tensor \"t\" overlaps tensor \"a\""},
        {"{" F32("a", "[2]", 0, 8) "," F32("t", "[2]", 0, 8) "}", 8,
         AKIN_ERR_FORMAT, "tensor \"t\" overlaps tensor \"a\""},
        {"{" F32("a", "[2]", 0, 8) "," F32("t", "[0]", 4, 4) "}", 8,
         AKIN_ERR_FORMAT, "tensor \"t\" overlaps tensor \"a\""},
        {"{" F32("a", "[1]", 0, 4) "," F32("t", "[1]", 8, 12) "}", 12,
         AKIN_ERR_FORMAT, "a hole of 4 bytes lies before tensor \"t\""},
        {"{" F32("t", "[1]", 1, 5) "}", 5, AKIN_ERR_FORMAT,
         "a hole of 1 bytes lies before tensor \"t\""},
        {"{" F32("t", "[1]", 0, 4) "}", 6, AKIN_ERR_FORMAT,
         "2 bytes after the last tensor"},
        {"{}", 1, AKIN_ERR_FORMAT, "1 bytes after the last tensor"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        akin_status_t status =
            check(cases[i].header, cases[i].data_bytes, &err);
        if (status != cases[i].status)
            (void)fprintf(stderr, "%s: %d\n", cases[i].header, status);
        CU_ASSERT_EQUAL(status, cases[i].status);
        CU_ASSERT(says(&err, "dir/m.safetensors"));
        CU_ASSERT(says(&err, cases[i].piece));
    }
}

/* Files too short for what their first eight bytes promise. */
static void test_lengths_refused(void)
{
    static const struct {
        unsigned char bytes[10];
        size_t n;
        const char *piece;
    } cases[] = {
        {{2, 0, 0, 0, 0, 0, 0}, 7, "7 bytes are too short"},
        {{0}, 0, "0 bytes are too short"},
        {{0}, 8, "does not start with '{'"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "header length 3 goes beyond"},
        {{1, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'},
         10,
         "header length 100000001 is above"},
        {{0, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'},
         10,
         "header length 100000000 goes beyond"},
        {{255, 255, 255, 255, 255, 255, 255, 255, '{', '}'},
         10,
         "header length 18446744073709551615 is above"},
        /* A page that a web server sent instead of the file. */
        {"<!DOCTYPE", 10, "is this a safetensors file?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_tensor_image_check(cases[i].bytes, cases[i].n,
                                                "dir/m.safetensors", &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT(says(&err, "dir/m.safetensors: "));
        CU_ASSERT(says(&err, cases[i].piece));
    }
}

static void test_find(void)
{
    char dir[CHECKPOINT_PATH_BYTES];
    akin_tensor_set_t *set = NULL;
    akin_tensor_t t;
    akin_matrix_t m;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    write_image(
        dir, "model.safetensors",
        "{" F32("w", "[2,3]", 0, 24) "," F32(
            "v", "[2]", 24, 32) ","
                                "\"q\":{\"dtype\":\"I8\",\"shape\":[2,2],"
                                "\"data_offsets\":[32,36]},"
                                "\"c\":{\"dtype\":\"BF16\",\"shape\":[1,2,1,2],"
                                "\"data_offsets\":[36,44]}} ",
        44);
    CU_ASSERT_EQUAL_FATAL(akin_tensor_set_open(dir, &set, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_tensor_set_count(set), 4);
    CU_ASSERT_EQUAL(akin_tensor_set_bytes(set), 44);

    CU_ASSERT_EQUAL_FATAL(akin_tensor_find(set, "c", &t, &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(t.name, "c");
    CU_ASSERT_STRING_EQUAL(t.dtype_name, "BF16");
    CU_ASSERT_EQUAL(t.n_dims, 4);
    CU_ASSERT_EQUAL(t.shape[3], 2);
    CU_ASSERT_EQUAL(t.bytes, 8);
    CU_ASSERT_EQUAL(((const unsigned char *)t.data)[0], 37);

    CU_ASSERT_EQUAL_FATAL(akin_tensor_find_matrix(set, "w", 2, 3, &m, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(m.dtype, AKIN_DTYPE_F32);
    CU_ASSERT_EQUAL(((const unsigned char *)akin_matrix_row(&m, 1))[0], 13);
    CU_ASSERT_EQUAL(akin_tensor_find_matrix(set, "v", 1, 2, &m, &err), AKIN_OK);
    CU_ASSERT_EQUAL(((const unsigned char *)m.data)[0], 25);

    static const struct {
        const char *name;
        uint32_t rows;
        uint32_t cols;
        akin_status_t status;
        const char *piece;
    } cases[] = {
        {"w", 3, 2, AKIN_ERR_FORMAT,
         "tensor \"w\" has shape [2, 3], config.json asks for [3, 2]"},
        {"w", 1, 6, AKIN_ERR_FORMAT,
         "tensor \"w\" has shape [2, 3], config.json asks for [6]"},
        {"v", 2, 1, AKIN_ERR_FORMAT,
         "tensor \"v\" has shape [2], config.json asks for [2, 1]"},
        {"c", 2, 2, AKIN_ERR_FORMAT,
         "tensor \"c\" has shape [1, 2, 1, 2], config.json asks for [2, 2]"},
        {"q", 2, 2, AKIN_ERR_UNSUPPORTED, "tensor \"q\" has dtype I8"},
        {"no", 2, 2, AKIN_ERR_NOT_FOUND, "tensor \"no\" is missing"},
        {"", 2, 2, AKIN_ERR_NOT_FOUND, "tensor \"\" is missing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CU_ASSERT_EQUAL(akin_tensor_find_matrix(set, cases[i].name,
                                                cases[i].rows, cases[i].cols,
                                                &m, &err),
                        cases[i].status);
        CU_ASSERT(says(&err, "/model.safetensors: tensor"));
        CU_ASSERT(says(&err, cases[i].piece));
    }
    akin_tensor_set_close(set);
    akin_tensor_set_close(NULL);
    checkpoint_remove(dir);
}

static void test_files_refused(void)
{
    char dir[CHECKPOINT_PATH_BYTES];
    char path[CHECKPOINT_PATH_BYTES];
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT(says(&err, "holds neither model.safetensors nor "
                         "model.safetensors.index.json"));
    checkpoint_path(dir, "model.safetensors", path);

    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_IO);
    CU_ASSERT(says(&err, "/model.safetensors: is not a regular file"));
    CU_ASSERT_EQUAL_FATAL(remove(path), 0);

    CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_IO);
    CU_ASSERT(says(&err, "/model.safetensors: is a directory"));
    CU_ASSERT_EQUAL_FATAL(remove(path), 0);

    CU_ASSERT_EQUAL_FATAL(checkpoint_write_text(dir, "model.safetensors", ""),
                          0);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_FORMAT);
    CU_ASSERT(says(&err, "/model.safetensors: is empty"));
    checkpoint_remove(dir);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT(says(&err, "no such model directory"));
}

static const runner_test_t tests[] = {
    {"headers taken", test_headers_taken},
    {"headers refused", test_headers_refused},
    {"lengths refused", test_lengths_refused},
    {"find", test_find},
    {"files refused", test_files_refused},
};

RUNNER_MAIN("safetensors", tests)
