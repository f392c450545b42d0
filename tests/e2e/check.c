/* check: reads what a run wrote, for the end-to-end tests. */
#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void fail(const char *what, const char *detail)
{
    (void)fprintf(stderr, "check: %s: %s\n", what, detail);
    exit(1);
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL)
        fail(path, error.text);
    return value;
}

/* The value at a.b.c, or NULL; numbers index arrays. */
static const json_t *at(const json_t *value, const char *path)
{
    char key[128];
    while (value != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        (void)snprintf(key, sizeof(key), "%.*s", (int)n, path);
        value = json_is_array(value)
                    ? json_array_get(value, strtoul(key, NULL, 10))
                    : json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
}

static const json_t *must_have(const json_t *value, const char *path,
                               const char *where)
{
    const json_t *found = at(value, path);
    if (found == NULL)
        fail(where, path);
    return found;
}

static void print_value(const json_t *value)
{
    if (json_is_string(value)) {
        (void)fwrite(json_string_value(value), 1, json_string_length(value),
                     stdout);
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (text != NULL)
        (void)puts(text);
    free(text);
}

/* What a run over all lines of a JSONL file finds. */
typedef struct totals {
    unsigned long long ok, errors, blocks, single, decoded;
} totals_t;

static void check_answer(const json_t *line, const char *where,
                         unsigned long block_tokens, totals_t *t)
{
    const json_t *usage = must_have(line, "response.body.usage", where);
    const json_int_t prompt =
        json_integer_value(must_have(usage, "prompt_tokens", where));
    const json_int_t completion =
        json_integer_value(must_have(usage, "completion_tokens", where));
    const json_int_t total =
        json_integer_value(must_have(usage, "total_tokens", where));
    const char *finish = json_string_value(
        must_have(line, "response.body.choices.0.finish_reason", where));
    if (prompt < 1 || completion < 1 || total != prompt + completion)
        fail(where, "usage does not add up");
    if (finish == NULL ||
        (strcmp(finish, "stop") != 0 && strcmp(finish, "length") != 0))
        fail(where, "finish_reason");
    if (!json_is_null(must_have(line, "error", where)))
        fail(where, "an answer with an error");
    t->ok++;
    /* The first token comes from the prefill rank: a request that ends with
     * it moves no block. */
    if (completion < 2)
        return;
    unsigned long long blocks =
        ((unsigned long long)prompt - 1) / block_tokens + 1;
    t->decoded++;
    t->blocks += blocks;
    t->single += blocks == 1;
}

static void check_line(const char *text, size_t bytes, const char *where,
                       unsigned long block_tokens, totals_t *t)
{
    json_error_t error;
    if (bytes == 0 || text[bytes - 1] != '\n')
        fail(where, "the last line is not whole");
    json_t *line = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (line == NULL)
        fail(where, error.text);
    if (!json_is_string(must_have(line, "id", where)))
        fail(where, "id");
    (void)must_have(line, "custom_id", where);
    const json_int_t status =
        json_integer_value(must_have(line, "response.status_code", where));
    if (status == 200) {
        check_answer(line, where, block_tokens, t);
    } else {
        if (!json_is_string(must_have(line, "error.code", where)) ||
            !json_is_string(
                must_have(line, "response.body.error.message", where)))
            fail(where, "an error without code or message");
        t->errors++;
    }
    json_decref(line);
}

/* Checks every line of an output and prints how many answers and errors it
 * has, how many blocks the decoded prompts fill, how many requests were
 * decoded and how many of these fill one block. */
static int check_lines(const char *path, unsigned long block_tokens)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail(path, "cannot open");
    totals_t t = {0};
    char *text = NULL, where[4300];
    size_t size = 0;
    ssize_t n;
    for (unsigned long number = 1; (n = getline(&text, &size, file)) > 0;
         number++) {
        (void)snprintf(where, sizeof(where), "%s:%lu", path, number);
        check_line(text, (size_t)n, where, block_tokens, &t);
    }
    free(text);
    (void)fclose(file);
    (void)printf("%llu %llu %llu %llu %llu\n", t.ok, t.errors, t.blocks,
                 t.decoded, t.single);
    return 0;
}

/* The line with a custom_id, of an input or an output. */
static json_t *find_line(const char *path, const char *id)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail(path, "cannot open");
    json_t *line;
    while ((line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const char *found = json_string_value(at(line, "custom_id"));
        if (found != NULL && strcmp(found, id) == 0)
            break;
        json_decref(line);
    }
    (void)fclose(file);
    if (line == NULL)
        fail(path, id);
    return line;
}

static int print_text(const char *path, const char *id)
{
    json_t *line = find_line(path, id);
    const json_t *text = at(line, "response.body.choices.0.text");
    if (text == NULL)
        text = must_have(line, "response.body.choices.0.message.content", path);
    print_value(text);
    json_decref(line);
    return 0;
}

/* The custom_id of every line, in order. */
static int print_ids(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail(path, "cannot open");
    json_t *line;
    while ((line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const char *id = json_string_value(at(line, "custom_id"));
        (void)puts(id != NULL ? id : "");
        json_decref(line);
    }
    (void)fclose(file);
    return 0;
}

/* A negative seed is the number of 64 bits with the same bits. */
static void print_option(const char *option, const json_t *value)
{
    if (value == NULL)
        return;
    (void)fputs(option, stdout);
    (void)putchar('\0');
    if (json_is_string(value))
        print_value(value);
    else if (json_is_integer(value))
        (void)printf("%llu", (unsigned long long)json_integer_value(value));
    else
        (void)printf("%.17g", json_real_value(value));
    (void)putchar('\0');
}

/* The arguments of `akin generate` for a request, each ended by a NUL. */
static int print_arguments(const char *path, const char *id, const char *chat)
{
    static const char *const names[][2] = {
        {"-p", "prompt"},     {"-n", "max_tokens"},
        {"--seed", "seed"},   {"--temperature", "temperature"},
        {"--top-p", "top_p"}, {"--top-k", "top_k"},
        {"--min-p", "min_p"}, {"--repetition-penalty", "repetition_penalty"},
        {"--stop", "stop"},
    };
    json_t *line = find_line(path, id);
    const json_t *body = must_have(line, "body", path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        print_option(names[i][0], at(body, names[i][1]));
    const json_t *messages = at(body, "messages");
    if (messages != NULL) {
        if (json_dump_file(messages, chat, 0) != 0)
            fail(chat, "cannot write");
        (void)printf("--chat%c%s%c", '\0', chat, '\0');
    }
    json_decref(line);
    return 0;
}

static int print_at(const char *file, const char *path)
{
    json_t *value = load(file);
    print_value(must_have(value, path, file));
    json_decref(value);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (argc == 4 && strcmp(command, "get") == 0)
        return print_at(argv[2], argv[3]);
    if (argc == 3 && strcmp(command, "ids") == 0)
        return print_ids(argv[2]);
    if (argc == 4 && strcmp(command, "lines") == 0)
        return check_lines(argv[2], strtoul(argv[3], NULL, 10));
    if (argc == 4 && strcmp(command, "text") == 0)
        return print_text(argv[2], argv[3]);
    if (argc == 5 && strcmp(command, "arguments") == 0)
        return print_arguments(argv[2], argv[3], argv[4]);
    (void)fputs("usage: check get FILE PATH | ids FILE | lines FILE BLOCK | "
                "text FILE ID | arguments FILE ID CHAT\n",
                stderr);
    return 2;
}
