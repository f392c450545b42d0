/* Tests of the model config: both spellings, defaults, and what is refused. */
#include "engine/model_config.h"

#include "checkpoint.h"
#include "runner.h"

#include <sys/stat.h>

/* Qwen3-235B-A22B in the spelling of its published config.json. */
static const char base[] =
    "{\"architectures\": [\"Qwen3MoeForCausalLM\"],\n"
    " \"model_type\": \"qwen3_moe\", \"attention_bias\": false,\n"
    " \"decoder_sparse_step\": 1, \"eos_token_id\": 151645,\n"
    " \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096,\n"
    " \"intermediate_size\": 12288, \"max_position_embeddings\": 40960,\n"
    " \"max_window_layers\": 94, \"mlp_only_layers\": [],\n"
    " \"moe_intermediate_size\": 1536, \"norm_topk_prob\": true,\n"
    " \"num_attention_heads\": 64, \"num_experts\": 128,\n"
    " \"num_experts_per_tok\": 8, \"num_hidden_layers\": 94,\n"
    " \"num_key_value_heads\": 4, \"rms_norm_eps\": 1e-06,\n"
    " \"rope_scaling\": null, \"rope_theta\": 1000000.0,\n"
    " \"sliding_window\": null, \"tie_word_embeddings\": false,\n"
    " \"torch_dtype\": \"bfloat16\", \"use_sliding_window\": false,\n"
    " \"vocab_size\": 151936}\n";

/* base with one stretch of text replaced. */
static void edit(const char *from, const char *to, char *text, size_t bytes)
{
    const char *at = strstr(base, from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    (void)snprintf(text, bytes, "%.*s%s%s", (int)(at - base), base, to,
                   at + strlen(from));
}

static akin_status_t parse(const char *text, akin_model_config_t *config,
                           akin_error_t *err)
{
    return akin_model_config_parse(text, strlen(text), "dir/config.json",
                                   config, err);
}

/* Whether a message has a piece; a miss prints both. */
static int says(const akin_error_t *err, const char *piece)
{
    if (strstr(err->text, piece) != NULL)
        return 1;
    (void)fprintf(stderr, "message: %s\nlacks:   %s\n", err->text, piece);
    return 0;
}

static void test_published(void)
{
    akin_model_config_t c;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(parse(base, &c, &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(c.architecture, "Qwen3MoeForCausalLM");
    CU_ASSERT_EQUAL(c.vocab_size, 151936);
    CU_ASSERT_EQUAL(c.hidden_size, 4096);
    CU_ASSERT_EQUAL(c.n_layers, 94);
    CU_ASSERT_EQUAL(c.n_heads, 64);
    CU_ASSERT_EQUAL(c.n_kv_heads, 4);
    CU_ASSERT_EQUAL(c.head_dim, 128);
    CU_ASSERT_EQUAL(c.n_experts, 128);
    CU_ASSERT_EQUAL(c.top_k, 8);
    CU_ASSERT_EQUAL(c.moe_intermediate_size, 1536);
    CU_ASSERT_EQUAL(c.max_positions, 40960);
    CU_ASSERT_DOUBLE_EQUAL(c.rope_theta, 1e6, 0);
    CU_ASSERT_DOUBLE_EQUAL(c.rms_norm_eps, 1e-6, 0);
    CU_ASSERT_EQUAL(c.norm_topk_prob, 1);
    CU_ASSERT_EQUAL(c.tie_word_embeddings, 0);
    CU_ASSERT_EQUAL(c.n_eos_ids, 1);
    CU_ASSERT_EQUAL(c.eos_ids[0], 151645);
}

/* Texts that differ from the base and must be taken. */
static void test_taken(void)
{
    static const struct {
        const char *from;
        const char *to;
    } cases[] = {
        {"\"num_experts\":", "\"num_local_experts\":"},
        {"\"num_experts\": 128",
         "\"num_experts\": 128, \"num_local_experts\": 128"},
        {"\"torch_dtype\"", "\"dtype\""},
        {"\"torch_dtype\": \"bfloat16\"", "\"torch_dtype\": null"},
        {"\"torch_dtype\": \"bfloat16\"", "\"torch_dtype\": \"float32\""},
        {"\"rope_scaling\": null, \"rope_theta\": 1000000.0",
         "\"rope_parameters\": {\"rope_type\": \"default\", "
         "\"rope_theta\": 1000000}"},
        {"\"rope_scaling\": null",
         "\"rope_parameters\": {\"rope_theta\": 1e6}"},
        {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"default\"}"},
        {"\"rope_theta\": 1000000.0", "\"rope_theta\": 1000000"},
        {"\"sliding_window\": null", "\"sliding_window\": 4096"},
        {"\"mlp_only_layers\": []", "\"mlp_only_layers\": null"},
        {"\"hidden_act\": \"silu\",", ""},
        {"\"tie_word_embeddings\": false,", ""},
        {"\"sliding_window\": null",
         "\"layer_types\": [\"full_attention\", \"full_attention\"]"},
        {"\"sliding_window\": null", "\"quantization_config\": null"},
        {"\"sliding_window\": null", "\"a key of tomorrow\": [1, {}]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[2048];
        edit(cases[i].from, cases[i].to, text, sizeof(text));
        akin_model_config_t c;
        akin_error_t err = {{0}};
        akin_status_t status = parse(text, &c, &err);
        if (status != AKIN_OK)
            (void)fprintf(stderr, "%s: %s\n", cases[i].to, err.text);
        CU_ASSERT_EQUAL(status, AKIN_OK);
        CU_ASSERT_EQUAL(c.n_experts, 128);
        CU_ASSERT_DOUBLE_EQUAL(c.rope_theta, 1e6, 0);
    }
}

static void test_default_head_dim(void)
{
    char text[2048];
    akin_model_config_t c;
    akin_error_t err = {{0}};
    edit("\"head_dim\": 128,", "", text, sizeof(text));
    CU_ASSERT_EQUAL_FATAL(parse(text, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.head_dim, 64); /* 4096 / 64, not the 128 of the file */
}

static void test_eos(void)
{
    char text[2048];
    akin_model_config_t c;
    akin_error_t err = {{0}};
    edit("\"eos_token_id\": 151645", "\"eos_token_id\": [151645, 151643]", text,
         sizeof(text));
    CU_ASSERT_EQUAL_FATAL(parse(text, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_eos_ids, 2);
    CU_ASSERT_EQUAL(c.eos_ids[1], 151643);
    CU_ASSERT(akin_model_config_is_eos(&c, 151645));
    CU_ASSERT(akin_model_config_is_eos(&c, 151643));
    CU_ASSERT(!akin_model_config_is_eos(&c, 0));
    CU_ASSERT(!akin_model_config_is_eos(&c, 151644));

    edit("\"eos_token_id\": 151645,", "", text, sizeof(text));
    CU_ASSERT_EQUAL_FATAL(parse(text, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_eos_ids, 0);
    CU_ASSERT(!akin_model_config_is_eos(&c, 0));

    const char *generation = "{\"eos_token_id\": [7, 151643], \"top_k\": 20}";
    CU_ASSERT_EQUAL_FATAL(akin_model_config_parse_generation(
                              generation, strlen(generation),
                              "dir/generation_config.json", &c, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(c.n_eos_ids, 2);
    CU_ASSERT_EQUAL(c.eos_ids[0], 7);

    /* A failure and a file without the key leave the ids alone. */
    static const char *const keeping[] = {"{\"eos_token_id\": [9, 151936]}",
                                          "{\"eos_token_id\": null}", "{}",
                                          "{\"eos_token_id\": [9, \"9\"]}"};
    static const akin_status_t status[] = {AKIN_ERR_FORMAT, AKIN_OK, AKIN_OK,
                                           AKIN_ERR_FORMAT};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(akin_model_config_parse_generation(
                            keeping[i], strlen(keeping[i]),
                            "dir/generation_config.json", &c, &err),
                        status[i]);
        CU_ASSERT_EQUAL(c.n_eos_ids, 2);
        CU_ASSERT_EQUAL(c.eos_ids[0], 7);
    }
    CU_ASSERT(says(&err, "dir/generation_config.json: key \"eos_token_id\""));
}

/* One change each; the message names the file, the key and the value. */
static const struct refusal {
    const char *from;
    const char *to;
    akin_status_t status;
    const char *piece;
} refusals[] = {
    /* What the engine has not got. */
    {"Qwen3MoeForCausalLM", "GptOssForCausalLM", AKIN_ERR_UNSUPPORTED,
     "key \"architectures\" is [\"GptOssForCausalLM\"]"},
    {"\"qwen3_moe\"", "\"qwen2_moe\"", AKIN_ERR_UNSUPPORTED,
     "key \"model_type\" is \"qwen2_moe\""},
    {"\"rope_scaling\": null",
     "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0}",
     AKIN_ERR_UNSUPPORTED, "key \"rope_scaling\" is {\"type\":\"yarn\""},
    {"\"rope_scaling\": null", "\"rope_scaling\": {\"factor\": 4.0}",
     AKIN_ERR_UNSUPPORTED, "key \"rope_scaling\""},
    {"\"rope_scaling\": null",
     "\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e6}",
     AKIN_ERR_UNSUPPORTED, "key \"rope_parameters\""},
    {"\"rope_scaling\": null",
     "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}",
     AKIN_ERR_UNSUPPORTED, "\"partial_rotary_factor\""},
    {"\"use_sliding_window\": false", "\"use_sliding_window\": true",
     AKIN_ERR_UNSUPPORTED, "key \"use_sliding_window\" is true"},
    {"\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]",
     AKIN_ERR_UNSUPPORTED, "key \"mlp_only_layers\" is [0]"},
    {"\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2",
     AKIN_ERR_UNSUPPORTED, "key \"decoder_sparse_step\" is 2"},
    {"\"attention_bias\": false", "\"attention_bias\": true",
     AKIN_ERR_UNSUPPORTED, "key \"attention_bias\" is true"},
    {"\"silu\"", "\"gelu_pytorch_tanh\"", AKIN_ERR_UNSUPPORTED,
     "supported: \"silu\""},
    {"\"sliding_window\": null",
     "\"quantization_config\": {\"quant_method\": \"fp8\"}",
     AKIN_ERR_UNSUPPORTED,
     "key \"quantization_config\" is {\"quant_method\":\"fp8\"}"},
    {"\"bfloat16\"", "\"float8_e4m3fn\"", AKIN_ERR_UNSUPPORTED,
     "key \"torch_dtype\" is \"float8_e4m3fn\""},
    {"\"sliding_window\": null", "\"layer_types\": [\"sliding_attention\"]",
     AKIN_ERR_UNSUPPORTED, "key \"layer_types\" is \"sliding_attention\""},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": [1,2,3,4,5,6,7,8,9]",
     AKIN_ERR_UNSUPPORTED, "key \"eos_token_id\" lists 9 ids"},
    /* Missing keys. */
    {"\"architectures\"", "\"architecture\"", AKIN_ERR_FORMAT,
     "key \"architectures\" is missing"},
    {"\"vocab_size\"", "\"vocab\"", AKIN_ERR_FORMAT,
     "key \"vocab_size\" is missing"},
    {"\"num_experts\": 128", "\"num_experts\": null", AKIN_ERR_FORMAT,
     "key \"num_experts\" (or \"num_local_experts\") is missing"},
    {"\"rope_theta\": 1000000.0,", "", AKIN_ERR_FORMAT,
     "\"rope_theta\" (or \"rope_parameters.rope_theta\") is missing"},
    {"\"rms_norm_eps\": 1e-06,", "", AKIN_ERR_FORMAT,
     "key \"rms_norm_eps\" is missing"},
    {"\"norm_topk_prob\": true,", "", AKIN_ERR_FORMAT,
     "key \"norm_topk_prob\" is missing"},
    /* Wrong types and values. */
    {"\"hidden_size\": 4096", "\"hidden_size\": 4096.0", AKIN_ERR_FORMAT,
     "key \"hidden_size\" is 4096.0, it must be a whole number from 1"},
    {"\"hidden_size\": 4096", "\"hidden_size\": \"4096\"", AKIN_ERR_FORMAT,
     "key \"hidden_size\" is \"4096\""},
    {"\"hidden_size\": 4096", "\"hidden_size\": -4096", AKIN_ERR_FORMAT,
     "key \"hidden_size\" is -4096"},
    {"\"hidden_size\": 4096", "\"hidden_size\": 4294967296", AKIN_ERR_FORMAT,
     "key \"hidden_size\" is 4294967296"},
    {"\"hidden_size\": 4096", "\"hidden_size\": 99999999999999999999",
     AKIN_ERR_FORMAT, "dir/config.json:4:"},
    {"\"num_hidden_layers\": 94", "\"num_hidden_layers\": 0", AKIN_ERR_FORMAT,
     "key \"num_hidden_layers\" is 0"},
    {"\"num_hidden_layers\": 94", "\"num_hidden_layers\": true",
     AKIN_ERR_FORMAT, "key \"num_hidden_layers\" is true"},
    {"\"num_experts\": 128", "\"num_experts\": 65536", AKIN_ERR_FORMAT,
     "key \"num_experts\" is 65536, it must be a whole number from 1 to 65535"},
    {"\"num_experts\": 128", "\"num_local_experts\": 65536", AKIN_ERR_FORMAT,
     "key \"num_local_experts\" is 65536"},
    {"\"num_experts\": 128", "\"num_experts\": 128, \"num_local_experts\": 64",
     AKIN_ERR_FORMAT,
     "keys \"num_experts\" and \"num_local_experts\" disagree"},
    {"\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 129",
     AKIN_ERR_FORMAT, "\"num_experts_per_tok\" 129"},
    {"\"num_key_value_heads\": 4", "\"num_key_value_heads\": 5",
     AKIN_ERR_FORMAT, "\"num_attention_heads\" 64 must be a multiple of"},
    {"\"head_dim\": 128", "\"head_dim\": 127", AKIN_ERR_FORMAT,
     "key \"head_dim\" is 127"},
    {"\"head_dim\": 128", "\"head_dim\": 514", AKIN_ERR_FORMAT,
     "key \"head_dim\" is 514"},
    {"\"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 4096",
     "\"hidden_size\": 4100", AKIN_ERR_FORMAT, "\"hidden_size\" 4100"},
    {"\"rope_theta\": 1000000.0", "\"rope_theta\": -1", AKIN_ERR_FORMAT,
     "key \"rope_theta\" is -1"},
    {"\"rope_theta\": 1000000.0", "\"rope_theta\": 1e999", AKIN_ERR_FORMAT,
     "dir/config.json:11:"},
    {"\"rope_scaling\": null", "\"rope_parameters\": {\"rope_theta\": 1e7}",
     AKIN_ERR_FORMAT, "\"rope_parameters.rope_theta\" disagree"},
    {"\"rope_scaling\": null", "\"rope_scaling\": \"yarn\"", AKIN_ERR_FORMAT,
     "key \"rope_scaling\" is \"yarn\""},
    {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0", AKIN_ERR_FORMAT,
     "key \"rms_norm_eps\" is 0"},
    {"\"norm_topk_prob\": true", "\"norm_topk_prob\": 1", AKIN_ERR_FORMAT,
     "key \"norm_topk_prob\" is 1, it must be true or false"},
    {"\"tie_word_embeddings\": false", "\"tie_word_embeddings\": \"no\"",
     AKIN_ERR_FORMAT, "key \"tie_word_embeddings\" is \"no\""},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": 151936", AKIN_ERR_FORMAT,
     "key \"eos_token_id\" is 151936"},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": [-1]", AKIN_ERR_FORMAT,
     "key \"eos_token_id\" is [-1]"},
    {"[\"Qwen3MoeForCausalLM\"]", "\"Qwen3MoeForCausalLM\"", AKIN_ERR_FORMAT,
     "key \"architectures\""},
    /* Not JSON, or not an object. */
    {"\"head_dim\": 128", "\"vocab_size\": 128", AKIN_ERR_FORMAT,
     "duplicate object key"},
    {"\"head_dim\": 128,", "\"head_dim\": 128", AKIN_ERR_FORMAT,
     "dir/config.json:4:"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *r = &refusals[i];
        char text[2048];
        edit(r->from, r->to, text, sizeof(text));
        akin_model_config_t c;
        memset(&c, 0x5a, sizeof(c));
        akin_model_config_t before = c;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(parse(text, &c, &err), r->status);
        CU_ASSERT(says(&err, "dir/config.json"));
        CU_ASSERT(says(&err, r->piece));
        CU_ASSERT_EQUAL(memcmp(&c, &before, sizeof(c)), 0);
    }
    static const char *const no_object[] = {"", "[]", "{", "{}x", "\xff", "7"};
    for (size_t i = 0; i < sizeof(no_object) / sizeof(no_object[0]); i++) {
        akin_model_config_t c;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(parse(no_object[i], &c, &err), AKIN_ERR_FORMAT);
        CU_ASSERT(says(&err, "dir/config.json"));
    }
}

static int read_fixture(const char *file, char *text, size_t bytes)
{
    char path[CHECKPOINT_PATH_BYTES];
    checkpoint_path(AKIN_FIXTURES "/model", file, path);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return -1;
    size_t n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    return fclose(f);
}

/* The tiny model's own files, read as files. */
static void test_files(void)
{
    char dir[CHECKPOINT_PATH_BYTES];
    char path[CHECKPOINT_PATH_BYTES];
    char text[4096];
    akin_model_config_t c;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);

    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT(says(&err, "/config.json: cannot open"));

    CU_ASSERT_EQUAL_FATAL(read_fixture("tiny-config.json", text, 4096), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write_text(dir, "config.json", text), 0);
    CU_ASSERT_EQUAL_FATAL(akin_model_config_read(dir, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_layers, 6);
    CU_ASSERT_EQUAL(c.hidden_size, 128);
    CU_ASSERT_EQUAL(c.head_dim, 32);
    CU_ASSERT_EQUAL(c.n_experts, 32);
    CU_ASSERT_EQUAL(c.top_k, 4);
    CU_ASSERT_EQUAL(c.moe_intermediate_size, 64);
    CU_ASSERT_EQUAL(c.vocab_size, 4096);
    CU_ASSERT_EQUAL(c.tie_word_embeddings, 1);
    CU_ASSERT_DOUBLE_EQUAL(c.rope_theta, 10000, 0);

    CU_ASSERT_EQUAL_FATAL(
        read_fixture("tiny-generation_config.json", text, 4096), 0);
    CU_ASSERT_EQUAL_FATAL(
        checkpoint_write_text(dir, "generation_config.json", text), 0);
    CU_ASSERT_EQUAL_FATAL(akin_model_config_read(dir, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_eos_ids, 1);
    CU_ASSERT_EQUAL(c.eos_ids[0], 4093);

    /* The generation config wins; a broken one is an error. */
    CU_ASSERT_EQUAL_FATAL(checkpoint_write_text(dir, "generation_config.json",
                                                "{\"eos_token_id\": [5, 6]}"),
                          0);
    CU_ASSERT_EQUAL_FATAL(akin_model_config_read(dir, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_eos_ids, 2);
    CU_ASSERT_EQUAL(c.eos_ids[0], 5);
    CU_ASSERT_EQUAL_FATAL(
        checkpoint_write_text(dir, "generation_config.json", "{"), 0);
    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_FORMAT);
    CU_ASSERT(says(&err, "/generation_config.json:1:"));

    CU_ASSERT_EQUAL_FATAL(checkpoint_write_text(dir, "config.json", ""), 0);
    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_FORMAT);
    CU_ASSERT(says(&err, "/config.json: is empty"));

    /* A FIFO without a writer must not hang the loader. */
    checkpoint_path(dir, "config.json", path);
    CU_ASSERT_EQUAL_FATAL(remove(path), 0);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_IO);
    CU_ASSERT(says(&err, "/config.json: is not a regular file"));
    CU_ASSERT_EQUAL_FATAL(remove(path), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_IO);
    CU_ASSERT(says(&err, "/config.json: is a directory"));
    checkpoint_remove(dir);

    CU_ASSERT_EQUAL(akin_model_config_read(dir, &c, &err), AKIN_ERR_NOT_FOUND);
}

static const runner_test_t tests[] = {
    {"published config", test_published},
    {"taken", test_taken},
    {"default head_dim", test_default_head_dim},
    {"eos", test_eos},
    {"refused", test_refused},
    {"files", test_files},
};

RUNNER_MAIN("model_config", tests)
