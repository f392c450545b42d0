/* Checkpoint: writes a random Qwen3-MoE model directory for tests, and tells
 * the exact value of every weight in it. */
#ifndef AKIN_TESTS_UNIT_CHECKPOINT_H
#define AKIN_TESTS_UNIT_CHECKPOINT_H

#include "checkpoint_number.h"
#include "math/matrix.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINT_NAME_BYTES 128
#define CHECKPOINT_PATH_BYTES 512

/** What to write; zero stands for the default in brackets. */
typedef struct checkpoint_params {
    uint32_t vocab_size;            /* [64] */
    uint32_t hidden_size;           /* [32] */
    uint32_t n_layers;              /* [2] */
    uint32_t n_heads;               /* [4] */
    uint32_t n_kv_heads;            /* [2] */
    uint32_t head_dim;              /* [16] */
    uint32_t n_experts;             /* [8] */
    uint32_t top_k;                 /* [2] */
    uint32_t moe_intermediate_size; /* [24] */
    uint32_t max_positions;         /* [256] */
    double rope_theta;              /* [10000] */
    double rms_norm_eps;            /* [1e-6] */
    int keep_topk_sum;              /* non-zero: norm_topk_prob is false */
    int tied;                       /* non-zero: the head is the embedding */
    int stale_head;     /* non-zero: store lm_head.weight though tied */
    uint32_t n_shards;  /* [1]; more than one: with an index */
    uint32_t pad_bytes; /* spaces after the header, on top of its alignment to
                           8: an odd number misaligns every tensor */
    int sparse;         /* non-zero: no data is written, the files have holes */
    uint64_t seed;
    /* Type of a tensor; NULL: bf16 everywhere. */
    akin_dtype_t (*dtype_of)(const char *name, void *arg);
    void *arg;
} checkpoint_params_t;

/** One tensor of the checkpoint; cols == 0: a vector of `rows` elements. */
typedef struct checkpoint_tensor {
    char name[CHECKPOINT_NAME_BYTES];
    uint32_t rows;
    uint32_t cols;
    akin_dtype_t dtype;
    uint64_t bytes;
} checkpoint_tensor_t;

/** Parameters with the defaults put in. */
static inline checkpoint_params_t
checkpoint_defaults(const checkpoint_params_t *params)
{
    checkpoint_params_t p = *params;
#define CHECKPOINT_DEFAULT(field, value)                                       \
    if (!(p.field > 0))                                                        \
    p.field = (value)
    CHECKPOINT_DEFAULT(vocab_size, 64);
    CHECKPOINT_DEFAULT(hidden_size, 32);
    CHECKPOINT_DEFAULT(n_layers, 2);
    CHECKPOINT_DEFAULT(n_heads, 4);
    CHECKPOINT_DEFAULT(n_kv_heads, 2);
    CHECKPOINT_DEFAULT(head_dim, 16);
    CHECKPOINT_DEFAULT(n_experts, 8);
    CHECKPOINT_DEFAULT(top_k, 2);
    CHECKPOINT_DEFAULT(moe_intermediate_size, 24);
    CHECKPOINT_DEFAULT(max_positions, 256);
    CHECKPOINT_DEFAULT(rope_theta, 10000.0);
    CHECKPOINT_DEFAULT(rms_norm_eps, 1e-6);
    CHECKPOINT_DEFAULT(n_shards, 1);
#undef CHECKPOINT_DEFAULT
    return p;
}

static inline uint32_t checkpoint_head_count(const checkpoint_params_t *p)
{
    return !p->tied || p->stale_head ? 1 : 0;
}

/** Number of tensors of parameters with defaults. */
static inline uint32_t checkpoint_count(const checkpoint_params_t *p)
{
    return 2 + checkpoint_head_count(p) + p->n_layers * (9 + 3 * p->n_experts);
}

/** The index-th tensor of parameters with defaults. */
static inline checkpoint_tensor_t
checkpoint_tensor(const checkpoint_params_t *p, uint32_t index)
{
    checkpoint_tensor_t t = {.rows = p->hidden_size};
    const uint32_t per_layer = 9 + 3 * p->n_experts;
    const uint32_t n_outer = 2 + checkpoint_head_count(p);
    if (index < n_outer) {
        static const char *const names[] = {"model.embed_tokens", "model.norm",
                                            "lm_head"};
        (void)snprintf(t.name, sizeof(t.name), "%s.weight", names[index]);
        if (index != 1) {
            t.rows = p->vocab_size;
            t.cols = p->hidden_size;
        }
    } else {
        const uint32_t layer = (index - n_outer) / per_layer;
        const uint32_t i = (index - n_outer) % per_layer;
        const uint32_t q = p->n_heads * p->head_dim;
        const uint32_t kv = p->n_kv_heads * p->head_dim;
        const struct {
            const char *part;
            uint32_t rows;
            uint32_t cols;
        } parts[] = {
            {"input_layernorm", p->hidden_size, 0},
            {"self_attn.q_proj", q, p->hidden_size},
            {"self_attn.k_proj", kv, p->hidden_size},
            {"self_attn.v_proj", kv, p->hidden_size},
            {"self_attn.o_proj", p->hidden_size, q},
            {"self_attn.q_norm", p->head_dim, 0},
            {"self_attn.k_norm", p->head_dim, 0},
            {"post_attention_layernorm", p->hidden_size, 0},
            {"mlp.gate", p->n_experts, p->hidden_size},
            {"gate_proj", p->moe_intermediate_size, p->hidden_size},
            {"up_proj", p->moe_intermediate_size, p->hidden_size},
            {"down_proj", p->hidden_size, p->moe_intermediate_size},
        };
        const uint32_t part = i < 9 ? i : 9 + (i - 9) % 3;
        t.rows = parts[part].rows;
        t.cols = parts[part].cols;
        if (i < 9)
            (void)snprintf(t.name, sizeof(t.name), "model.layers.%u.%s.weight",
                           layer, parts[part].part);
        else
            (void)snprintf(t.name, sizeof(t.name),
                           "model.layers.%u.mlp.experts.%u.%s.weight", layer,
                           (i - 9) / 3, parts[part].part);
    }
    t.dtype =
        p->dtype_of != NULL ? p->dtype_of(t.name, p->arg) : AKIN_DTYPE_BF16;
    t.bytes = (uint64_t)t.rows * (t.cols > 0 ? t.cols : 1) *
              akin_dtype_bytes(t.dtype);
    return t;
}

/* Weights of matrices are uniform with variance 1 / hidden, so that activations
 * keep their size; those of norms are uniform in [0.5, 1.5). */
static inline float checkpoint_draw(const checkpoint_params_t *p,
                                    const checkpoint_tensor_t *t,
                                    uint64_t index)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ p->seed;
    for (const char *c = t->name; *c != '\0'; c++)
        key = checkpoint_mix(key + (unsigned char)*c);
    uint64_t bits =
        checkpoint_mix(key + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
    double u = (double)(bits >> 11) * 0x1p-53;
    double x = t->cols == 0 ? 0.5 + u
                            : (2 * u - 1) * sqrt(3.0 / (double)p->hidden_size);
    return (float)checkpoint_round(x, t->dtype);
}

/**
 * The value stored at an index of a tensor, after rounding to its type; exact
 * in f32.
 *
 * \param[in] params  as given to checkpoint_write().
 * \param[in] name    a name of the checkpoint; another one ends the process.
 * \param[in] index   row * cols + column.
 */
static inline float checkpoint_value(const checkpoint_params_t *params,
                                     const char *name, uint64_t index)
{
    checkpoint_params_t p = checkpoint_defaults(params);
    uint32_t n = checkpoint_count(&p);
    for (uint32_t i = 0; i < n; i++) {
        checkpoint_tensor_t t = checkpoint_tensor(&p, i);
        if (strcmp(t.name, name) == 0)
            return checkpoint_draw(&p, &t, index);
    }
    (void)fprintf(stderr, "checkpoint: no tensor %s\n", name);
    abort();
}

/** All values of a tensor, malloc'ed, for tests that read many. */
static inline float *checkpoint_values(const checkpoint_params_t *params,
                                       const char *name)
{
    checkpoint_params_t p = checkpoint_defaults(params);
    uint32_t n = checkpoint_count(&p);
    for (uint32_t i = 0; i < n; i++) {
        checkpoint_tensor_t t = checkpoint_tensor(&p, i);
        if (strcmp(t.name, name) != 0)
            continue;
        uint64_t count = t.bytes / akin_dtype_bytes(t.dtype);
        float *values = malloc(count * sizeof(*values));
        for (uint64_t k = 0; values != NULL && k < count; k++)
            values[k] = checkpoint_draw(&p, &t, k);
        return values;
    }
    (void)fprintf(stderr, "checkpoint: no tensor %s\n", name);
    abort();
}

static inline void checkpoint_path(const char *dir, const char *file,
                                   char path[CHECKPOINT_PATH_BYTES])
{
    if (snprintf(path, CHECKPOINT_PATH_BYTES, "%s/%s", dir, file) >=
        CHECKPOINT_PATH_BYTES)
        abort();
}

/** File name of a shard of parameters with defaults. */
static inline void checkpoint_shard_name(const checkpoint_params_t *p,
                                         uint32_t shard, char name[64])
{
    if (p->n_shards == 1)
        (void)snprintf(name, 64, "model.safetensors");
    else
        (void)snprintf(name, 64, "model-%05u-of-%05u.safetensors", shard + 1,
                       p->n_shards);
}

/** Write text to DIR/FILE; 0 on success. */
static inline int checkpoint_write_text(const char *dir, const char *file,
                                        const char *text)
{
    char path[CHECKPOINT_PATH_BYTES];
    checkpoint_path(dir, file, path);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return -1;
    int failed = fputs(text, f) < 0;
    return fclose(f) != 0 || failed ? -1 : 0;
}

static inline void checkpoint_put_data(FILE *f, const checkpoint_params_t *p,
                                       const checkpoint_tensor_t *t)
{
    const size_t size = akin_dtype_bytes(t->dtype);
    const uint64_t count = t->bytes / size;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = checkpoint_bits(checkpoint_draw(p, t, i), t->dtype);
        for (size_t b = 0; b < size; b++)
            (void)fputc((int)(bits >> 8 * b & 0xff), f);
    }
}

/* Tensor i lies in shard i % n_shards, so an expert's parts are spread. */
static inline int checkpoint_write_shard(const char *dir,
                                         const checkpoint_params_t *p,
                                         uint32_t shard)
{
    static const char *const dtypes[] = {"BF16", "F16", "F32"};
    char name[64];
    char path[CHECKPOINT_PATH_BYTES];
    checkpoint_shard_name(p, shard, name);
    checkpoint_path(dir, name, path);
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        return -1;
    (void)fputs("........{\"__metadata__\":{\"format\":\"pt\"}", f);
    const uint32_t n = checkpoint_count(p);
    uint64_t offset = 0;
    for (uint32_t i = shard; i < n; i += p->n_shards) {
        checkpoint_tensor_t t = checkpoint_tensor(p, i);
        (void)fprintf(f, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%u", t.name,
                      dtypes[t.dtype], t.rows);
        if (t.cols > 0)
            (void)fprintf(f, ",%u", t.cols);
        (void)fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                      offset, offset + t.bytes);
        offset += t.bytes;
    }
    (void)fputc('}', f);
    while (ftell(f) % 8 != 0)
        (void)fputc(' ', f);
    for (uint32_t i = 0; i < p->pad_bytes; i++)
        (void)fputc(' ', f);
    const uint64_t start = (uint64_t)ftell(f);
    if (!p->sparse)
        for (uint32_t i = shard; i < n; i += p->n_shards) {
            checkpoint_tensor_t t = checkpoint_tensor(p, i);
            checkpoint_put_data(f, p, &t);
        }
    (void)fseek(f, 0, SEEK_SET);
    for (int b = 0; b < 8; b++)
        (void)fputc((int)((start - 8) >> 8 * b & 0xff), f);
    int failed = ferror(f) || fflush(f) != 0 ||
                 ftruncate(fileno(f), (off_t)(start + offset)) != 0;
    return fclose(f) != 0 || failed ? -1 : 0;
}

static inline int checkpoint_write_index(const char *dir,
                                         const checkpoint_params_t *p)
{
    char path[CHECKPOINT_PATH_BYTES];
    checkpoint_path(dir, "model.safetensors.index.json", path);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return -1;
    const uint32_t n = checkpoint_count(p);
    uint64_t total = 0;
    (void)fputs("{\"weight_map\":{", f);
    for (uint32_t i = 0; i < n; i++) {
        char shard[64];
        checkpoint_tensor_t t = checkpoint_tensor(p, i);
        checkpoint_shard_name(p, i % p->n_shards, shard);
        (void)fprintf(f, "%s\n\"%s\":\"%s\"", i > 0 ? "," : "", t.name, shard);
        total += t.bytes;
    }
    (void)fprintf(f, "},\n\"metadata\":{\"total_size\":%" PRIu64 "}}\n", total);
    return fclose(f) == 0 ? 0 : -1;
}

static inline int checkpoint_write_config(const char *dir,
                                          const checkpoint_params_t *p)
{
    char text[1024];
    (void)snprintf(
        text, sizeof(text),
        "{\"architectures\":[\"Qwen3MoeForCausalLM\"],"
        "\"model_type\":\"qwen3_moe\",\"vocab_size\":%u,\"hidden_size\":%u,"
        "\"num_hidden_layers\":%u,\"num_attention_heads\":%u,"
        "\"num_key_value_heads\":%u,\"head_dim\":%u,\"num_experts\":%u,"
        "\"num_experts_per_tok\":%u,\"moe_intermediate_size\":%u,"
        "\"max_position_embeddings\":%u,\"rope_theta\":%.17g,"
        "\"rms_norm_eps\":%.17g,\"norm_topk_prob\":%s,"
        "\"tie_word_embeddings\":%s,\"hidden_act\":\"silu\","
        "\"torch_dtype\":\"bfloat16\",\"eos_token_id\":%u}\n",
        p->vocab_size, p->hidden_size, p->n_layers, p->n_heads, p->n_kv_heads,
        p->head_dim, p->n_experts, p->top_k, p->moe_intermediate_size,
        p->max_positions, p->rope_theta, p->rms_norm_eps,
        p->keep_topk_sum ? "false" : "true", p->tied ? "true" : "false",
        p->vocab_size - 1);
    return checkpoint_write_text(dir, "config.json", text);
}

/**
 * Write config.json, the shards and, with several, the index into an existing
 * directory.
 *
 * \return 0 on success.
 */
static inline int checkpoint_write(const char *dir,
                                   const checkpoint_params_t *params)
{
    checkpoint_params_t p = checkpoint_defaults(params);
    if (checkpoint_write_config(dir, &p) != 0)
        return -1;
    for (uint32_t i = 0; i < p.n_shards; i++)
        if (checkpoint_write_shard(dir, &p, i) != 0)
            return -1;
    return p.n_shards > 1 ? checkpoint_write_index(dir, &p) : 0;
}

/**
 * Make an empty directory below TMPDIR or /tmp.
 *
 * \param[out] dir  its path.
 * \return 0 on success.
 */
static inline int checkpoint_make_dir(char dir[CHECKPOINT_PATH_BYTES])
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(dir, CHECKPOINT_PATH_BYTES, "%s/akin-model-XXXXXX",
                   base != NULL && base[0] != '\0' ? base : "/tmp");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

/** Remove a directory and the files in it (it must hold no directories). */
static inline void checkpoint_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        char path[CHECKPOINT_PATH_BYTES + 256];
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)remove(path);
    }
    (void)closedir(d);
    (void)rmdir(dir);
}

#endif
