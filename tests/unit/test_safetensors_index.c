/* Tests of the safetensors index: shards, and an index that disagrees with
 * them. */
#include "runner.h"
#include "tensor_image.h"

/* Two shards: x and y in the first, z in the second. */
static void write_shards(const char *dir, const char *index)
{
    write_image(dir, "s1",
                "{" F32("x", "[1]", 0, 4) "," F32("y", "[1]", 4, 8) "}", 8);
    write_image(dir, "s2", "{" F32("z", "[3]", 0, 12) "}", 12);
    CU_ASSERT_EQUAL_FATAL(
        checkpoint_write_text(dir, "model.safetensors.index.json", index), 0);
}

static void test_index(void)
{
    static const struct {
        const char *index;
        akin_status_t status;
        const char *pieces[2];
    } cases[] = {
        {"{\"weight_map\":{\"x\":\"s1\",\"y\":\"s1\",\"z\":\"s2\"}}",
         AKIN_OK,
         {"", ""}},
        {"{\"metadata\":{\"total_size\":20},"
         "\"weight_map\":{\"z\":\"s2\",\"x\":\"s1\",\"y\":\"s1\"}}",
         AKIN_OK,
         {"", ""}},
        {"{\"metadata\":{\"total_size\":21},"
         "\"weight_map\":{\"z\":\"s2\",\"x\":\"s1\",\"y\":\"s1\"}}",
         AKIN_ERR_FORMAT,
         {"\"metadata.total_size\" is 21", "20 bytes"}},
        {"{\"metadata\":{\"total_size\":20.0},"
         "\"weight_map\":{\"z\":\"s2\",\"x\":\"s1\",\"y\":\"s1\"}}",
         AKIN_ERR_FORMAT,
         {"\"metadata.total_size\" must", ""}},
        {"{\"metadata\":[],\"weight_map\":{\"z\":\"s2\"}}",
         AKIN_ERR_FORMAT,
         {"\"metadata\" must be an object", ""}},
        /* A tensor that the shard lacks, in the wrong shard, not listed. */
        {"{\"weight_map\":{\"x\":\"s1\",\"y\":\"s1\",\"z\":\"s2\","
         "\"u\":\"s2\"}}",
         AKIN_ERR_FORMAT,
         {"tensor \"u\" is not in the shard", "/s2"}},
        {"{\"weight_map\":{\"x\":\"s1\",\"y\":\"s2\",\"z\":\"s2\"}}",
         AKIN_ERR_FORMAT,
         {"tensor \"y\" stands in", "/s2"}},
        {"{\"weight_map\":{\"x\":\"s1\",\"z\":\"s2\"}}",
         AKIN_ERR_FORMAT,
         {"tensor \"y\" of", "/s1 is not in the index"}},
        /* Shards that are missing, or that lie elsewhere. */
        {"{\"weight_map\":{\"x\":\"s1\",\"y\":\"s1\",\"z\":\"s3\"}}",
         AKIN_ERR_NOT_FOUND,
         {"/s3: cannot open", ""}},
        {"{\"weight_map\":{\"x\":\"../s1\"}}",
         AKIN_ERR_FORMAT,
         {"the shard \"../s1\" of \"x\" must be a plain file name", ""}},
        {"{\"weight_map\":{\"x\":\"/etc/passwd\"}}",
         AKIN_ERR_FORMAT,
         {"the shard \"/etc/passwd\" of \"x\"", ""}},
        {"{\"weight_map\":{\"x\":\"..\"}}",
         AKIN_ERR_FORMAT,
         {"the shard \"..\" of \"x\"", ""}},
        {"{\"weight_map\":{\"x\":\"\"}}",
         AKIN_ERR_FORMAT,
         {"the shard \"\" of \"x\"", ""}},
        {"{\"weight_map\":{\"x\":1}}",
         AKIN_ERR_FORMAT,
         {"the shard of \"x\" must be a string", ""}},
        {"{\"weight_map\":{}}", AKIN_ERR_FORMAT, {"\"weight_map\" must", ""}},
        {"{}", AKIN_ERR_FORMAT, {"\"weight_map\" must", ""}},
        {"{\"weight_map\":{\"x\":\"s1\",\"x\":\"s2\"}}",
         AKIN_ERR_FORMAT,
         {"index.json:1:", "duplicate"}},
        {"{\"weight_map\":\n{\"x\"}}", AKIN_ERR_FORMAT, {"index.json:2:", ""}},
        /* The index as its own shard is no safetensors file. */
        {"{\"weight_map\":{\"x\":\"model.safetensors.index.json\"}}",
         AKIN_ERR_FORMAT,
         {"index.json: header length", ""}},
    };
    char dir[CHECKPOINT_PATH_BYTES];
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        write_shards(dir, cases[i].index);
        akin_status_t status = open_and_close(dir, &err);
        if (status != cases[i].status)
            (void)fprintf(stderr, "%s: %s\n", cases[i].index, err.text);
        CU_ASSERT_EQUAL(status, cases[i].status);
        if (cases[i].status != AKIN_OK)
            CU_ASSERT(says(&err, dir));
        CU_ASSERT(says(&err, cases[i].pieces[0]));
        CU_ASSERT(says(&err, cases[i].pieces[1]));
    }

    /* The same tensor in two shards. */
    akin_error_t err = {{0}};
    write_shards(dir, cases[0].index);
    write_image(dir, "s2",
                "{" F32("z", "[2]", 0, 8) "," F32("x", "[1]", 8, 12) "}", 12);
    CU_ASSERT_EQUAL(open_and_close(dir, &err), AKIN_ERR_FORMAT);
    CU_ASSERT(says(&err, "/s2: tensor \"x\" is also in"));
    CU_ASSERT(says(&err, "/s1"));

    /* A missing tensor is reported against the index. */
    akin_tensor_set_t *set = NULL;
    akin_tensor_t t;
    write_shards(dir, cases[0].index);
    CU_ASSERT_EQUAL_FATAL(akin_tensor_set_open(dir, &set, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_tensor_find(set, "u", &t, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT(says(&err, "model.safetensors.index.json: tensor \"u\" is"));
    CU_ASSERT_EQUAL_FATAL(akin_tensor_find(set, "z", &t, &err), AKIN_OK);
    CU_ASSERT(strstr(t.file, "/s2") != NULL);
    akin_tensor_set_close(set);

    /* A single file goes before an index. */
    write_image(dir, "model.safetensors", "{" F32("u", "[1]", 0, 4) "}", 4);
    CU_ASSERT_EQUAL_FATAL(akin_tensor_set_open(dir, &set, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_tensor_set_count(set), 1);
    akin_tensor_set_close(set);
    checkpoint_remove(dir);
}

static const runner_test_t tests[] = {
    {"index", test_index},
};

RUNNER_MAIN("safetensors_index", tests)
