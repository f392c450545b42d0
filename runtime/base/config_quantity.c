/* Config quantities: sizes, times and numbers to and from text. */
#include "base/config_internal.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128_t;

typedef struct unit {
    const char *name;
    uint64_t factor; /* bytes or ns */
} unit_t;

/* Ascending; formatting takes the last one that divides the value. */
static const unit_t size_units[] = {
    {"B", 1},
    {"KB", UINT64_C(1000)},
    {"KiB", UINT64_C(1) << 10},
    {"MB", UINT64_C(1000000)},
    {"MiB", UINT64_C(1) << 20},
    {"GB", UINT64_C(1000000000)},
    {"GiB", UINT64_C(1) << 30},
    {"TB", UINT64_C(1000000000000)},
    {"TiB", UINT64_C(1) << 40},
    {"PB", UINT64_C(1000000000000000)},
    {"PiB", UINT64_C(1) << 50},
};

static const unit_t time_units[] = {
    {"ns", 1},
    {"us", UINT64_C(1000)},
    {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},
    {"min", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* More digits than this cannot matter and would overflow the scale. */
#define FRACTION_DIGITS_MAX 18

static const unit_t *units_of(int is_time, size_t *n_p)
{
    *n_p = is_time ? COUNT_OF(time_units) : COUNT_OF(size_units);
    return is_time ? time_units : size_units;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const unit_t *unit_find(int is_time, const char *name)
{
    size_t n;
    const unit_t *units = units_of(is_time, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    /* The international system writes kilo with a small k. */
    return !is_time && strcmp(name, "kB") == 0 ? &size_units[1] : NULL;
}

const char *akini_config_quantity_units(int is_time)
{
    return is_time ? "ns, us, ms, s, min, h"
                   : "B, KB, KiB, MB, MiB, GB, GiB, TB, TiB, PB, PiB";
}

const char *akini_config_quantity_parse(const char *text, int is_time,
                                        int64_t *value_p)
{
    const char *p = text;
    if (*p == '-')
        return "is negative";
    if (!is_digit(*p))
        return "does not start with a number";
    uint64_t mantissa = 0;
    uint64_t scale = 1;
    int fraction_digits = 0;
    for (; is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (mantissa > (INT64_MAX - digit) / 10)
            return "is more than 2^63 - 1";
        mantissa = mantissa * 10 + digit;
    }
    uint64_t fraction = 0;
    if (*p == '.') {
        for (p++; is_digit(*p); p++) {
            if (++fraction_digits > FRACTION_DIGITS_MAX)
                return "has more than 18 decimals";
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
        if (fraction_digits == 0)
            return "has no digit after the point";
    }
    while (*p == ' ')
        p++;
    if (*p == '\0') {
        if (mantissa != 0 || fraction != 0)
            return "has no unit";
        *value_p = 0;
        return NULL;
    }
    const unit_t *unit = unit_find(is_time, p);
    if (unit == NULL)
        return "has an unknown unit";
    /* Both products are below 2^115; the fraction rounds half up. */
    u128_t value = (u128_t)mantissa * unit->factor +
                   ((u128_t)fraction * unit->factor + scale / 2) / scale;
    if (value > INT64_MAX)
        return "is more than 2^63 - 1";
    *value_p = (int64_t)value;
    return NULL;
}

akin_status_t akin_config_parse_size(const char *text, uint64_t *bytes_p)
{
    int64_t value;
    if (akini_config_quantity_parse(text, 0, &value) != NULL)
        return AKIN_ERR_FORMAT;
    *bytes_p = (uint64_t)value;
    return AKIN_OK;
}

akin_status_t akin_config_parse_time(const char *text, int64_t *ns_p)
{
    return akini_config_quantity_parse(text, 1, ns_p) == NULL ? AKIN_OK
                                                              : AKIN_ERR_FORMAT;
}

void akini_config_quantity_format(int64_t value, int is_time,
                                  char buffer[AKINI_CONFIG_NUMBER_BYTES])
{
    size_t n;
    const unit_t *units = units_of(is_time, &n);
    uint64_t left = (uint64_t)value;
    size_t best = 0;
    for (size_t i = 1; i < n && left != 0; i++)
        if (left % units[i].factor == 0)
            best = i;
    (void)snprintf(buffer, AKINI_CONFIG_NUMBER_BYTES, "%llu%s",
                   (unsigned long long)(left / units[best].factor),
                   units[best].name);
}

/* strtod and printf follow the program's locale, a job file does not. */
static locale_t c_locale_enter(locale_t *mine_p)
{
    *mine_p = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return *mine_p != (locale_t)0 ? uselocale(*mine_p) : (locale_t)0;
}

static void c_locale_leave(locale_t mine, locale_t before)
{
    if (mine == (locale_t)0)
        return;
    (void)uselocale(before);
    freelocale(mine);
}

int akini_config_float_parse(const char *text, double *value_p)
{
    /* strtod would also take blanks, hexadecimal numbers, "inf" and "nan". */
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0')
        return -1;
    locale_t mine;
    locale_t before = c_locale_enter(&mine);
    char *end;
    double value = strtod(text, &end);
    c_locale_leave(mine, before);
    if (*end != '\0' || !isfinite(value))
        return -1;
    /* Negative zero equals zero and must not look different. */
    *value_p = value + 0.0;
    return 0;
}

void akini_config_float_format(double value,
                               char buffer[AKINI_CONFIG_NUMBER_BYTES])
{
    locale_t mine;
    locale_t before = c_locale_enter(&mine);
    for (int precision = 15; precision <= 17; precision++) {
        (void)snprintf(buffer, AKINI_CONFIG_NUMBER_BYTES, "%.*g", precision,
                       value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    c_locale_leave(mine, before);
    /* libconfig takes 3 for an integer, and older ones take 1e-05 for two
     * words. */
    if (strchr(buffer, '.') == NULL && isfinite(value)) {
        char exponent[8];
        size_t digits = strcspn(buffer, "e");
        (void)snprintf(exponent, sizeof(exponent), "%.7s", buffer + digits);
        (void)snprintf(buffer + digits, AKINI_CONFIG_NUMBER_BYTES - digits,
                       ".0%s", exponent);
    }
}
