/* Kernels: dispatch, conversions and elementwise arithmetic of each path,
 * beside the same in double. */
#include "math/kernels.h"

#include "draw.h"
#include "kernel_paths.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void names(void)
{
    const akin_kernels_t *kernels = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_kernels_find("auto", &kernels, &err), AKIN_OK);
    CU_ASSERT_PTR_EQUAL(kernels, akin_kernels_of(akin_kernels_best()));
    for (akin_kernel_path_t p = AKIN_KERNEL_AVX512; p < AKIN_KERNEL_COUNT;
         p++) {
        const char *name = akin_kernel_path_name(p);
        akin_status_t status = akin_kernels_find(name, &kernels, &err);
        if (akin_kernels_of(p) != NULL) {
            CU_ASSERT_EQUAL(status, AKIN_OK);
            CU_ASSERT_STRING_EQUAL(kernels->name, name);
        } else {
            CU_ASSERT_EQUAL(status, AKIN_ERR_UNSUPPORTED);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, name));
        }
    }
    CU_ASSERT_PTR_NOT_NULL(akin_kernels_of(AKIN_KERNEL_PORTABLE));
    CU_ASSERT_PTR_NULL(akin_kernels_of(AKIN_KERNEL_COUNT));
    CU_ASSERT_EQUAL(akin_kernels_find("avx9", &kernels, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(kernels);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "avx9"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "portable"));
    CU_ASSERT_EQUAL(akin_kernels_find("", &kernels, &err), AKIN_ERR_INVALID);
}

/* What an IEEE half stands for. */
static double half_value(uint32_t h)
{
    uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(mantissa, -24);
    else
        magnitude = ldexp(1024 + mantissa, (int)exponent - 25);
    return h >> 15 != 0 ? -magnitude : magnitude;
}

static void widen_all(const akin_kernels_t *kernels)
{
    enum { COUNT = 65536 };
    static uint16_t x[COUNT];
    static float y[COUNT];
    unsigned wrong_bf16 = 0, wrong_f16 = 0, wrong_f32 = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = (uint16_t)i;
    kernels->widen[AKIN_DTYPE_BF16](x, y, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        wrong_bf16 += bits_of(y[i]) != i << 16;
    CU_ASSERT_EQUAL(wrong_bf16, 0);

    kernels->widen[AKIN_DTYPE_F16](x, y, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        float expected = (float)half_value(i);
        if (isnan(expected))
            wrong_f16 += isnan(y[i]) ? 0 : 1;
        else
            wrong_f16 += bits_of(y[i]) != bits_of(expected);
    }
    CU_ASSERT_EQUAL(wrong_f16, 0);

    /* Any length, any alignment, nothing behind the end. */
    for (size_t n = 0; n <= 40; n++) {
        unsigned char bytes[1 + 40 * 4];
        float all[41];
        for (int d = 0; d < AKIN_DTYPE_COUNT; d++) {
            float values[40];
            draw_matrix(bytes + 1, values, n, (akin_dtype_t)d, n, 100.0);
            for (size_t i = 0; i <= 40; i++)
                all[i] = 7.0f;
            kernels->widen[d](bytes + 1, all, n);
            for (size_t i = 0; i <= 40; i++)
                wrong_f32 +=
                    bits_of(all[i]) != bits_of(i < n ? values[i] : 7.0f);
        }
    }
    CU_ASSERT_EQUAL(wrong_f32, 0);
}

static void widen(void)
{
    kernel_paths_each(widen_all);
}

/* Nearest bf16, ties to even, by way of the rounding unit in double. */
static uint32_t nearest_bf16(float x)
{
    if (isinf(x))
        return bits_of(x) >> 16;
    int exponent = 0;
    (void)frexp((double)x, &exponent);
    int unit = (exponent < -125 ? -125 : exponent) - 8;
    double rounded = ldexp(nearbyint(ldexp((double)x, -unit)), unit);
    return bits_of(copysignf((float)rounded, x)) >> 16;
}

static void narrow_all(const akin_kernels_t *kernels)
{
    static const uint32_t low[] = {0,      1,      0x7fff, 0x8000,
                                   0x8001, 0xffff, 0x4321};
    enum { LOWS = sizeof(low) / sizeof(low[0]), COUNT = 65536 };
    static float x[COUNT];
    static uint16_t y[COUNT];
    unsigned wrong = 0, wrong_nan = 0;
    for (size_t l = 0; l <= LOWS; l++) {
        for (uint32_t i = 0; i < COUNT; i++)
            x[i] = float_of(l < LOWS ? i << 16 | low[l]
                                     : (uint32_t)draw_bits(9, i));
        kernels->narrow_bf16(x, y, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            if (isnan(x[i]))
                wrong_nan += (y[i] & 0x7f80) != 0x7f80 || (y[i] & 0x7f) == 0;
            else
                wrong += y[i] != nearest_bf16(x[i]);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(wrong_nan, 0);

    for (size_t n = 0; n <= 40; n++) {
        uint16_t out[41];
        memset(out, 0x5a, sizeof(out));
        kernels->narrow_bf16(x, out, n);
        for (size_t i = 0; i <= 40; i++) {
            if (i < n && isnan(x[i]))
                continue;
            uint32_t expected = i < n ? nearest_bf16(x[i]) : 0x5a5a;
            CU_ASSERT_EQUAL(out[i], expected);
        }
    }
}

static void narrow(void)
{
    kernel_paths_each(narrow_all);
}

static void exp_all(const akin_kernels_t *kernels)
{
    enum { COUNT = 350000 };
    float *x = malloc(COUNT * sizeof(*x)), *y = malloc(COUNT * sizeof(*y));
    CU_ASSERT_FATAL(x != NULL && y != NULL);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(-87.0 + 175.0 * (double)i / (COUNT - 1));
    memcpy(y, x, COUNT * sizeof(*y));
    kernels->exp(y, COUNT);
    double worst = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double exact = exp((double)x[i]);
        double error = fabs((double)y[i] - exact) / exact;
        worst = error > worst ? error : worst;
    }
    CU_ASSERT(worst < 3e-7);
    free(x);
    free(y);

    float special[] = {-INFINITY, 0.0f, -0.0f, -104.5f, -88.0f, -1e30f};
    kernels->exp(special, 6);
    CU_ASSERT_EQUAL(bits_of(special[0]), 0);
    CU_ASSERT_EQUAL(special[1], 1.0f);
    CU_ASSERT_EQUAL(special[2], 1.0f);
    CU_ASSERT(special[3] >= 0.0f && special[3] <= 0x1p-149f);
    /* A subnormal result keeps what bits it has. */
    CU_ASSERT(fabs((double)special[4] - exp(-88.0)) <= 0x1p-148);
    CU_ASSERT_EQUAL(bits_of(special[5]), 0);
}

static void exponential(void)
{
    kernel_paths_each(exp_all);
}

/* Is |x - exact| <= relative * |exact| + absolute? */
static int close_to(float x, double exact, double relative, double absolute)
{
    return fabs((double)x - exact) <= relative * fabs(exact) + absolute;
}

#define MAX 130u

static void norm_all(const akin_kernels_t *kernels)
{
    unsigned wrong = 0, moved = 0;
    for (size_t n = 1; n <= MAX; n++) {
        float x[MAX], w[MAX], y[MAX + 1];
        const float eps = n % 3 == 0 ? 0.5f : 1e-6f;
        draw_floats(x, n, n, 3.0);
        draw_floats(w, n, 1000 + n, 2.0);
        y[n] = 7.0f;
        kernels->rms_norm(x, w, eps, y, n);
        double squares = 0;
        for (size_t i = 0; i < n; i++)
            squares += (double)x[i] * (double)x[i];
        double root = sqrt(squares / (double)n + (double)eps);
        for (size_t i = 0; i < n; i++)
            wrong +=
                !close_to(y[i], (double)x[i] / root * (double)w[i], 1e-6, 0);
        wrong += y[n] != 7.0f;
        kernels->rms_norm(x, w, eps, x, n);
        moved += memcmp(x, y, n * sizeof(float)) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(moved, 0);
}

static void norm(void)
{
    kernel_paths_each(norm_all);
}

static void rope_all(const akin_kernels_t *kernels)
{
    unsigned wrong = 0;
    for (size_t half = 1; half <= 64; half++) {
        float x[129], before[129], c[64], s[64];
        draw_floats(x, 2 * half + 1, half, 1.0);
        memcpy(before, x, sizeof(x));
        for (size_t i = 0; i < half; i++) {
            double angle = 3.0 * draw_signed(half, 500 + i);
            c[i] = (float)cos(angle);
            s[i] = (float)sin(angle);
        }
        kernels->rope(x, c, s, half);
        for (size_t i = 0; i < half; i++) {
            double a = (double)before[i], b = (double)before[half + i];
            double ci = (double)c[i], si = (double)s[i];
            wrong += !close_to(x[i], a * ci - b * si, 0, 3e-7);
            wrong += !close_to(x[half + i], b * ci + a * si, 0, 3e-7);
        }
        wrong += bits_of(x[2 * half]) != bits_of(before[2 * half]);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void rope(void)
{
    kernel_paths_each(rope_all);
}

static void silu_all(const akin_kernels_t *kernels)
{
    unsigned wrong = 0;
    for (size_t n = 1; n <= MAX; n++) {
        float gate[MAX + 1], before[MAX], up[MAX];
        draw_floats(gate, n, n, n % 2 == 0 ? 4.0 : 200.0);
        memcpy(before, gate, n * sizeof(float));
        draw_floats(up, n, 2000 + n, 2.0);
        gate[n] = 7.0f;
        kernels->silu_mul(gate, up, n);
        for (size_t i = 0; i < n; i++) {
            double g = (double)before[i];
            double exact = g / (1.0 + exp(-g)) * (double)up[i];
            wrong += !close_to(gate[i], exact, 1e-6, 1e-36);
        }
        wrong += gate[n] != 7.0f;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void silu(void)
{
    kernel_paths_each(silu_all);
}

static void sums_all(const akin_kernels_t *kernels)
{
    unsigned wrong = 0, wrong_add = 0;
    for (size_t n = 1; n <= 40; n++)
        for (size_t k = 1; k <= 9; k++) {
            float terms[9][40], weights[9], y[41], before[40], other[40];
            const float *x[9];
            for (size_t j = 0; j < k; j++) {
                draw_floats(terms[j], n, 100 * n + j, 1.0);
                x[j] = terms[j];
            }
            draw_floats(weights, k, 7 * n + k, 1.0);
            draw_floats(before, n, 3 * n + k, 1.0);
            draw_floats(other, n, 5 * n + k, 1.0);
            memcpy(y, before, n * sizeof(float));
            y[n] = 7.0f;
            kernels->combine(y, x, weights, k, n);
            for (size_t i = 0; i < n; i++) {
                double sum = (double)before[i];
                for (size_t j = 0; j < k; j++)
                    sum += (double)weights[j] * (double)terms[j][i];
                wrong += !close_to(y[i], sum, 0, 1e-6);
            }
            memcpy(y, before, n * sizeof(float));
            kernels->add(y, other, n);
            for (size_t i = 0; i < n; i++)
                wrong_add += y[i] != before[i] + other[i];
            wrong_add += y[n] != 7.0f;
        }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(wrong_add, 0);
}

static void sums(void)
{
    kernel_paths_each(sums_all);
}

static void read_all(const akin_kernels_t *kernels)
{
    static uint64_t words[512];
    uint64_t sum = 0;
    for (size_t i = 0; i < 512; i++) {
        words[i] = draw_bits(3, i);
        sum += words[i];
    }
    CU_ASSERT_EQUAL(kernels->read(words, sizeof(words)), sum);
    /* Every byte counts, the last ones too. */
    uint64_t before = kernels->read(words, sizeof(words) - 3);
    unsigned char *last = (unsigned char *)words + sizeof(words) - 4;
    *last = (unsigned char)(*last ^ 1);
    CU_ASSERT_NOT_EQUAL(kernels->read(words, sizeof(words) - 3), before);
    CU_ASSERT_EQUAL(kernels->read(words, 0), 0);
}

static void read_words(void)
{
    kernel_paths_each(read_all);
}

static const runner_test_t tests[] = {
    {"paths by name", names},
    {"widen: every bf16 and f16", widen},
    {"narrow: ties, overflow, NaN, subnormals", narrow},
    {"exp in its bound", exponential},
    {"rms_norm", norm},
    {"rope", rope},
    {"silu_mul", silu},
    {"combine and add", sums},
    {"read", read_words},
};

RUNNER_MAIN("kernels", tests)
