/* Tests of the model: binding of random checkpoints, the sizes of published
 * ones, and what does not fit. */
#include "engine/model.h"

#include "checkpoint.h"
#include "runner.h"

static int says(const akin_error_t *err, const char *piece)
{
    if (strstr(err->text, piece) != NULL)
        return 1;
    (void)fprintf(stderr, "message: %s\nlacks:   %s\n", err->text, piece);
    return 0;
}

static void test_numbers(void)
{
    /* Ties go to even; f16 has a least step of 2^-24. */
    static const struct {
        double x;
        akin_dtype_t dtype;
        double rounded;
        uint32_t bits;
    } cases[] = {
        {1.0, AKIN_DTYPE_BF16, 1.0, 0x3f80},
        {1.00390625, AKIN_DTYPE_BF16, 1.0, 0x3f80},
        {1.01171875, AKIN_DTYPE_BF16, 1.015625, 0x3f82},
        {-3.140625, AKIN_DTYPE_BF16, -3.140625, 0xc049},
        {1.0, AKIN_DTYPE_F16, 1.0, 0x3c00},
        {0.1, AKIN_DTYPE_F16, 0.0999755859375, 0x2e66},
        {-65504.0, AKIN_DTYPE_F16, -65504.0, 0xfbff},
        {0x1p-25, AKIN_DTYPE_F16, 0.0, 0x0000},
        {0x3p-25, AKIN_DTYPE_F16, 0x1p-23, 0x0002},
        {0x1p-14, AKIN_DTYPE_F16, 0x1p-14, 0x0400},
        {0.1, AKIN_DTYPE_F32, 0x1.99999ap-4, 0x3dcccccd},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double rounded = checkpoint_round(cases[i].x, cases[i].dtype);
        CU_ASSERT_DOUBLE_EQUAL(rounded, cases[i].rounded, 0);
        CU_ASSERT_EQUAL(checkpoint_bits((float)rounded, cases[i].dtype),
                        cases[i].bits);
    }
}

static akin_dtype_t mixed_dtype(const char *name, void *arg)
{
    (void)arg;
    if (strstr(name, "norm") != NULL || strstr(name, "mlp.gate.") != NULL)
        return AKIN_DTYPE_F32;
    return strstr(name, "down_proj") != NULL ? AKIN_DTYPE_F16 : AKIN_DTYPE_BF16;
}

static float element(const akin_matrix_t *m, uint64_t index)
{
    const unsigned char *p =
        (const unsigned char *)m->data + index * akin_dtype_bytes(m->dtype);
    if (m->dtype == AKIN_DTYPE_F16) {
        uint32_t h = (uint32_t)p[1] << 8 | p[0];
        int exponent = (int)(h >> 10 & 31);
        double fraction = h & 1023;
        double x = exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(fraction + 1024, exponent - 25);
        return (float)(h >> 15 ? -x : x);
    }
    uint32_t bits = m->dtype == AKIN_DTYPE_F32
                        ? (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
                              (uint32_t)p[1] << 8 | p[0]
                        : (uint32_t)p[1] << 24 | (uint32_t)p[0] << 16;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Every element of a bound matrix is the one that was written. */
static void compare(const akin_matrix_t *m, const checkpoint_params_t *params,
                    const char *name, uint32_t rows, uint32_t cols)
{
    CU_ASSERT_EQUAL(m->rows, rows);
    CU_ASSERT_EQUAL(m->cols, cols);
    float *values = checkpoint_values(params, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    uint64_t n = (uint64_t)rows * cols;
    uint64_t n_wrong = 0;
    for (uint64_t i = 0; i < n; i++) {
        float x = element(m, i);
        n_wrong += memcmp(&x, &values[i], sizeof(x)) != 0;
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    float last = element(m, n - 1);
    CU_ASSERT_DOUBLE_EQUAL(last, checkpoint_value(params, name, n - 1), 0);
    free(values);
}

static void compare_layer(const akin_model_t *model,
                          const checkpoint_params_t *params, uint32_t index)
{
    const akin_model_config_t *c = &model->config;
    const akin_layer_t *layer = &model->layers[index];
    const uint32_t q = c->n_heads * c->head_dim;
    const uint32_t kv = c->n_kv_heads * c->head_dim;
    const uint32_t width = c->moe_intermediate_size;
    const struct {
        const akin_matrix_t *matrix;
        const char *part;
        uint32_t rows;
        uint32_t cols;
    } rows[] = {
        {&layer->input_norm, "input_layernorm", 1, c->hidden_size},
        {&layer->q_proj, "self_attn.q_proj", q, c->hidden_size},
        {&layer->k_proj, "self_attn.k_proj", kv, c->hidden_size},
        {&layer->v_proj, "self_attn.v_proj", kv, c->hidden_size},
        {&layer->o_proj, "self_attn.o_proj", c->hidden_size, q},
        {&layer->q_norm, "self_attn.q_norm", 1, c->head_dim},
        {&layer->k_norm, "self_attn.k_norm", 1, c->head_dim},
        {&layer->post_norm, "post_attention_layernorm", 1, c->hidden_size},
        {&layer->router, "mlp.gate", c->n_experts, c->hidden_size},
        {&layer->experts[0].gate, "mlp.experts.0.gate_proj", width,
         c->hidden_size},
        {&layer->experts[3].up, "mlp.experts.3.up_proj", width, c->hidden_size},
        {&layer->experts[7].down, "mlp.experts.7.down_proj", c->hidden_size,
         width},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[CHECKPOINT_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "model.layers.%u.%s.weight", index,
                       rows[i].part);
        compare(rows[i].matrix, params, name, rows[i].rows, rows[i].cols);
    }
}

static void compare_model(const checkpoint_params_t *params)
{
    char dir[CHECKPOINT_PATH_BYTES];
    akin_model_t *model = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write(dir, params), 0);
    akin_status_t status = akin_model_open(dir, &model, &err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    const akin_model_config_t *c = &model->config;
    compare(&model->embedding, params, "model.embed_tokens.weight",
            c->vocab_size, c->hidden_size);
    compare(&model->final_norm, params, "model.norm.weight", 1, c->hidden_size);
    if (params->tied)
        CU_ASSERT_PTR_EQUAL(model->head.data, model->embedding.data);
    compare(&model->head, params,
            params->tied ? "model.embed_tokens.weight" : "lm_head.weight",
            c->vocab_size, c->hidden_size);
    for (uint32_t i = 0; i < c->n_layers; i++)
        compare_layer(model, params, i);
    akin_model_close(model);
    checkpoint_remove(dir);
}

static void test_values(void)
{
    const checkpoint_params_t cases[] = {
        {.seed = 1},
        {.seed = 2, .n_shards = 3, .dtype_of = mixed_dtype},
        {.seed = 3, .tied = 1, .pad_bytes = 1, .dtype_of = mixed_dtype},
        {.seed = 4, .tied = 1, .stale_head = 1, .n_shards = 3, .pad_bytes = 3},
        {.seed = 5,
         .n_experts = 9,
         .top_k = 9,
         .hidden_size = 20,
         .n_heads = 3,
         .n_kv_heads = 1,
         .head_dim = 6,
         .vocab_size = 17,
         .moe_intermediate_size = 7,
         .keep_topk_sum = 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        compare_model(&cases[i]);
}

/* The published totals of two checkpoints, from files of their full size that
 * are one large hole. */
static void test_published_sizes(void)
{
    static const struct {
        checkpoint_params_t params;
        uint32_t n_tensors;
        uint64_t weight_bytes;
        uint64_t expert_bytes;
    } cases[] = {
        {{.vocab_size = 151936,
          .hidden_size = 2048,
          .n_layers = 48,
          .n_heads = 32,
          .n_kv_heads = 4,
          .head_dim = 128,
          .n_experts = 128,
          .top_k = 8,
          .moe_intermediate_size = 768,
          .n_shards = 16,
          .sparse = 1},
         18867,
         UINT64_C(61064245248),
         9437184},
        {{.vocab_size = 151936,
          .hidden_size = 4096,
          .n_layers = 94,
          .n_heads = 64,
          .n_kv_heads = 4,
          .head_dim = 128,
          .n_experts = 128,
          .top_k = 8,
          .moe_intermediate_size = 1536,
          .n_shards = 118,
          .sparse = 1},
         36945,
         UINT64_C(470187269120),
         37748736},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char dir[CHECKPOINT_PATH_BYTES];
        akin_model_t *model = NULL;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(checkpoint_count(&cases[i].params), cases[i].n_tensors);
        CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
        if (checkpoint_write(dir, &cases[i].params) != 0) {
            /* A file system without holes, or a limit on file sizes. */
            (void)fprintf(stderr, "left out: cannot make sparse files\n");
        } else {
            akin_status_t status = akin_model_open(dir, &model, &err);
            CU_ASSERT_EQUAL(status, AKIN_OK);
            if (status == AKIN_OK) {
                CU_ASSERT_EQUAL(model->weight_bytes, cases[i].weight_bytes);
                CU_ASSERT_EQUAL(akin_model_expert_bytes(model),
                                cases[i].expert_bytes);
            } else {
                (void)fprintf(stderr, "%s\n", err.text);
            }
            akin_model_close(model);
        }
        checkpoint_remove(dir);
    }
}

/* Names a tensor that mixed-up parameters change. */
static akin_status_t open_pair(const checkpoint_params_t *weights,
                               const checkpoint_params_t *config,
                               akin_error_t *err)
{
    char dir[CHECKPOINT_PATH_BYTES];
    akin_model_t *model = NULL;
    const checkpoint_params_t filled = checkpoint_defaults(config);
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write(dir, weights), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write_config(dir, &filled), 0);
    akin_status_t status = akin_model_open(dir, &model, err);
    if (status != AKIN_OK)
        CU_ASSERT_PTR_NULL(model);
    akin_model_close(model);
    checkpoint_remove(dir);
    return status;
}

static void test_misfits(void)
{
    static const struct {
        checkpoint_params_t weights;
        checkpoint_params_t config;
        akin_status_t status;
        const char *piece;
    } cases[] = {
        {{.vocab_size = 63},
         {.vocab_size = 64},
         AKIN_ERR_FORMAT,
         "/model.safetensors: tensor \"model.embed_tokens.weight\" has shape "
         "[63, 32], config.json asks for [64, 32]"},
        {{.n_kv_heads = 4},
         {.n_kv_heads = 2},
         AKIN_ERR_FORMAT,
         "tensor \"model.layers.0.self_attn.k_proj.weight\" has shape "
         "[64, 32], config.json asks for [32, 32]"},
        {{.head_dim = 16, .n_heads = 4},
         {.head_dim = 32, .n_heads = 2, .n_kv_heads = 1},
         AKIN_ERR_FORMAT,
         "tensor \"model.layers.0.self_attn.q_norm.weight\" has shape [16], "
         "config.json asks for [32]"},
        {{.moe_intermediate_size = 24},
         {.moe_intermediate_size = 20},
         AKIN_ERR_FORMAT,
         "tensor \"model.layers.0.mlp.experts.0.gate_proj.weight\" has shape "
         "[24, 32], config.json asks for [20, 32]"},
        {{.tied = 1},
         {.tied = 0},
         AKIN_ERR_NOT_FOUND,
         "/model.safetensors: tensor \"lm_head.weight\" is missing"},
        {{.n_layers = 2, .n_shards = 3},
         {.n_layers = 3},
         AKIN_ERR_NOT_FOUND,
         "/model.safetensors.index.json: tensor "
         "\"model.layers.2.input_layernorm.weight\" is missing"},
        /* The weights of a larger model hold all that a smaller one needs. */
        {{.n_layers = 3}, {.n_layers = 2}, AKIN_OK, ""},
        /* Sizes beyond any file must not ask for memory. */
        {{.n_layers = 1},
         {.n_layers = 4096},
         AKIN_ERR_NOT_FOUND,
         "tensor \"model.layers.1.input_layernorm.weight\" is missing"},
        {{.n_experts = 8},
         {.n_experts = 65535},
         AKIN_ERR_FORMAT,
         "tensor \"model.layers.0.mlp.gate.weight\" has shape [8, 32], "
         "config.json asks for [65535, 32]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        akin_status_t status =
            open_pair(&cases[i].weights, &cases[i].config, &err);
        CU_ASSERT_EQUAL(status, cases[i].status);
        CU_ASSERT(says(&err, cases[i].piece));
    }
}

/* One expert's tensor under another name. */
static void test_missing_expert(void)
{
    static const char name[] = "layers.1.mlp.experts.7.up_proj";
    char dir[CHECKPOINT_PATH_BYTES];
    char path[CHECKPOINT_PATH_BYTES];
    const checkpoint_params_t params = {.seed = 6};
    akin_model_t *model = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(dir), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write(dir, &params), 0);
    checkpoint_path(dir, "model.safetensors", path);
    FILE *f = fopen(path, "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    char header[65536];
    size_t n = fread(header, 1, sizeof(header), f);
    const char *at = memmem(header, n, name, strlen(name));
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT_EQUAL(fseek(f, at - header, SEEK_SET), 0);
    CU_ASSERT_EQUAL(fputc('L', f), 'L');
    CU_ASSERT_EQUAL(fclose(f), 0);
    CU_ASSERT_EQUAL(akin_model_open(dir, &model, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT(says(&err, "/model.safetensors: tensor "
                         "\"model.layers.1.mlp.experts.7.up_proj.weight\" is "
                         "missing"));
    checkpoint_remove(dir);
    akin_model_close(NULL);
}

static const runner_test_t tests[] = {
    {"numbers", test_numbers},
    {"values", test_values},
    {"published sizes", test_published_sizes},
    {"misfits", test_misfits},
    {"missing expert", test_missing_expert},
};

RUNNER_MAIN("model", tests)
