/* Config for people: the printed table. */
#include "config_rows.h"

#include <string.h>

static void test_print(void)
{
    akin_config_t *config = config_make();
    config_set(config, "kv.block_tokens=32");
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    CU_ASSERT_EQUAL(akin_config_print(config, stream), AKIN_OK);
    (void)fclose(stream);
    static const char *const parts[] = {
        "KEY              VALUE      MEANING\n",
        "model.path       (not set)  Folder of the model.\n"
        "                            text; required\n",
        "kv.block_tokens  32         Tokens of one KV block.\n"
        "                            integer, 8 to 64 tokens; default 16; set "
        "by --set\n",
        "kv.slab          \"256MiB\"   Bytes of KV blocks on one rank.\n"
        "                            size, at least 1MiB; default 256MiB\n",
        "one of union, random, least-loaded; default union\n",
        "kv.lease.time    \"30s\"      Time until pinned blocks are freed.\n"
        "                            time, 1ms to 1h; default 30s\n",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, parts[i]));
    for (const char *p = text; *p != '\0'; p += strcspn(p, "\n") + 1)
        CU_ASSERT(strcspn(p, "\n") <= 100);
    free(text);
    akin_config_destroy(config);
}

static const runner_test_t tests[] = {
    {"print", test_print},
};
RUNNER_MAIN("config_print", tests)
