/* Config source: reading files, putting includes in place, bounds. */
#include "base/config_source.h"
#include "base/config_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file while it is scanned. */
typedef struct scan {
    const char *p;
    const char *name;
    int line;
    int depth;       /* files around this one */
    int allow_files; /* includes are allowed */
    int line_start;  /* only blanks so far on this line */
} scan_t;

static akin_status_t scan_text(akini_config_source_t *source, const char *text,
                               const char *name, int depth, int allow_files,
                               akin_error_t *err);

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

static akin_status_t append(akini_config_source_t *source, const char *bytes,
                            size_t n, akin_error_t *err)
{
    if (n >= AKINI_CONFIG_SOURCE_BYTES_MAX - source->bytes)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "more than %zu bytes of settings",
                              AKINI_CONFIG_SOURCE_BYTES_MAX);
    if (source->bytes + n + 1 > source->capacity) {
        size_t capacity = 2 * (source->bytes + n + 1);
        char *text = realloc(source->text, capacity);
        if (text == NULL)
            return no_memory(err);
        source->text = text;
        source->capacity = capacity;
    }
    memcpy(source->text + source->bytes, bytes, n);
    source->bytes += n;
    source->text[source->bytes] = '\0';
    for (size_t i = 0; i < n; i++)
        source->line += bytes[i] == '\n';
    return AKIN_OK;
}

/* Keep a copy of a file's name for the spans and messages. */
static akin_status_t name_keep(akini_config_source_t *source, const char *name,
                               const char **kept_p, akin_error_t *err)
{
    char **names =
        realloc(source->names, (source->n_names + 1) * sizeof(*names));
    if (names == NULL)
        return no_memory(err);
    source->names = names;
    char *copy = strdup(name);
    if (copy == NULL)
        return no_memory(err);
    source->names[source->n_names++] = copy;
    *kept_p = copy;
    return AKIN_OK;
}

static akin_status_t span_start(akini_config_source_t *source,
                                const scan_t *scan, akin_error_t *err)
{
    akini_config_span_t *spans =
        realloc(source->spans, (source->n_spans + 1) * sizeof(*spans));
    if (spans == NULL)
        return no_memory(err);
    source->spans = spans;
    source->spans[source->n_spans++] =
        (akini_config_span_t){source->line, scan->line, scan->name};
    return AKIN_OK;
}

static akin_status_t read_descriptor(int fd, const char *path, char **text_p,
                                     akin_error_t *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return akin_error_set(err, akin_status_from_errno(errno), "%s: %s",
                              path, strerror(errno));
    /* A pipe or device could block for ever or never end. */
    if (!S_ISREG(info.st_mode))
        return akin_error_set(err, AKIN_ERR_IO, "%s: not a regular file", path);
    size_t room = AKINI_CONFIG_SOURCE_BYTES_MAX + 1;
    char *text = malloc(room + 1);
    if (text == NULL)
        return no_memory(err);
    size_t used = 0;
    while (used < room) {
        ssize_t n = read(fd, text + used, room - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            (void)akin_error_set(err, AKIN_ERR_IO, "%s: %s", path,
                                 strerror(errno));
            free(text);
            return AKIN_ERR_IO;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    text[used] = '\0';
    akin_status_t status = AKIN_OK;
    if (used == room)
        status =
            akin_error_set(err, AKIN_ERR_CONFIG, "%s: larger than %zu bytes",
                           path, AKINI_CONFIG_SOURCE_BYTES_MAX);
    else if (strlen(text) != used)
        status = akin_error_set(err, AKIN_ERR_CONFIG,
                                "%s: a NUL byte at offset %zu; not a text file",
                                path, strlen(text));
    if (status != AKIN_OK) {
        free(text);
        return status;
    }
    *text_p = text;
    return AKIN_OK;
}

static akin_status_t read_file(const char *path, char **text_p,
                               akin_error_t *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        akin_status_t status = errno == ENOENT || errno == ENOTDIR
                                   ? AKIN_ERR_NOT_FOUND
                                   : AKIN_ERR_IO;
        return akin_error_set(err, status, "%s: %s", path, strerror(errno));
    }
    akin_status_t status = read_descriptor(fd, path, text_p, err);
    (void)close(fd);
    return status;
}

/* An include's path is relative to the file that names it. */
static char *include_path(const scan_t *scan, const char *path, size_t bytes)
{
    const char *slash = strrchr(scan->name, '/');
    size_t folder =
        slash != NULL && path[0] != '/' ? (size_t)(slash + 1 - scan->name) : 0;
    char *joined = malloc(folder + bytes + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, scan->name, folder);
    memcpy(joined + folder, path, bytes);
    joined[folder + bytes] = '\0';
    return joined;
}

static akin_status_t include_file(akini_config_source_t *source,
                                  const scan_t *scan, const char *path,
                                  size_t bytes, akin_error_t *err)
{
    char *joined = include_path(scan, path, bytes);
    if (joined == NULL)
        return no_memory(err);
    char *text = NULL;
    akin_status_t status = read_file(joined, &text, err);
    if (status != AKIN_OK) {
        /* The job file is there and wrong; only memory is another matter. */
        status = status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG;
        (void)akin_error_prefix(err, status, "%s:%d: @include: ", scan->name,
                                scan->line);
    } else {
        status = scan_text(source, text, joined, scan->depth + 1, 1, err);
        free(text);
    }
    free(joined);
    return status;
}

/* Put an included file in place of its directive. The rest of the line, if
 * any, becomes a line of its own. */
static akin_status_t include(akini_config_source_t *source, scan_t *scan,
                             akin_error_t *err)
{
    const char *path;
    size_t bytes = akini_config_token_include(scan->p, &path);
    const char *fault = NULL;
    if (bytes == 0 || path[bytes] != '"' || !scan->line_start)
        fault = "unexpected \"@\"; a file is included by a line of its own: "
                "@include \"FILE\"";
    else if (!scan->allow_files)
        fault = "@include works only in a file";
    else if (scan->depth + 1 >= AKINI_CONFIG_SOURCE_DEPTH_MAX)
        fault = "files include each other more than 8 deep; does one include "
                "itself?";
    else if (source->lexer.last == AKINI_CONFIG_LAST_EQUALS)
        fault = "@include cannot stand for a value";
    else if (++source->lexer.items > AKINI_CONFIG_ITEMS_MAX)
        fault = "more than 8192 settings and includes";
    if (fault != NULL)
        return akin_error_set(err, AKIN_ERR_CONFIG, "%s:%d: %s", scan->name,
                              scan->line, fault);
    akin_status_t status = append(source, "\n", 1, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "%s:%d: ", scan->name,
                                 scan->line);
    status = include_file(source, scan, path, bytes, err);
    if (status != AKIN_OK)
        return status;
    scan->p = path + bytes + 1;
    return span_start(source, scan, err);
}

static akin_status_t scan_all(akini_config_source_t *source, scan_t *scan,
                              akin_error_t *err)
{
    while (*scan->p != '\0') {
        if (*scan->p == '@') {
            akin_status_t status = include(source, scan, err);
            if (status != AKIN_OK)
                return status;
            continue;
        }
        size_t length = akini_config_token(&source->lexer, scan->p, err);
        akin_status_t status = AKIN_ERR_CONFIG;
        if (length > 0)
            status = append(source, scan->p, length, err);
        if (status != AKIN_OK)
            return akin_error_prefix(err, status, "%s:%d: ", scan->name,
                                     scan->line);
        for (size_t i = 0; i < length; i++) {
            char c = scan->p[i];
            scan->line += c == '\n';
            if (c == '\n')
                scan->line_start = 1;
            else if (c != ' ' && c != '\t')
                scan->line_start = 0;
        }
        scan->p += length;
    }
    /* libconfig takes a comment only if a newline ends it. */
    if (source->bytes > 0 && source->text[source->bytes - 1] == '\n')
        return AKIN_OK;
    return append(source, "\n", 1, err);
}

static akin_status_t scan_text(akini_config_source_t *source, const char *text,
                               const char *name, int depth, int allow_files,
                               akin_error_t *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    scan_t scan = {.p = text,
                   .line = 1,
                   .depth = depth,
                   .allow_files = allow_files,
                   .line_start = 1};
    /* Some editors start a file with a byte order mark. */
    if (strncmp(text, mark, sizeof(mark) - 1) == 0)
        scan.p += sizeof(mark) - 1;
    akin_status_t status = name_keep(source, name, &scan.name, err);
    if (status == AKIN_OK)
        status = span_start(source, &scan, err);
    if (status == AKIN_OK)
        status = scan_all(source, &scan, err);
    return status;
}

akin_status_t akini_config_source_text(akini_config_source_t *source,
                                       const char *text, const char *name,
                                       akin_error_t *err)
{
    *source = (akini_config_source_t){.line = 1};
    akin_status_t status = scan_text(source, text, name, 0, 0, err);
    if (status != AKIN_OK)
        akini_config_source_cleanup(source);
    return status;
}

akin_status_t akini_config_source_load(akini_config_source_t *source,
                                       const char *path, akin_error_t *err)
{
    *source = (akini_config_source_t){.line = 1};
    char *text = NULL;
    akin_status_t status = read_file(path, &text, err);
    if (status != AKIN_OK)
        return status;
    status = scan_text(source, text, path, 0, 1, err);
    free(text);
    if (status != AKIN_OK)
        akini_config_source_cleanup(source);
    return status;
}

void akini_config_source_cleanup(akini_config_source_t *source)
{
    for (size_t i = 0; i < source->n_names; i++)
        free(source->names[i]);
    free(source->names);
    free(source->spans);
    free(source->text);
    *source = (akini_config_source_t){0};
}

const char *akini_config_source_where(const akini_config_source_t *source,
                                      int line, int *line_in_file_p)
{
    size_t i = source->n_spans - 1;
    while (i > 0 && source->spans[i].line > line)
        i--;
    const akini_config_span_t *span = &source->spans[i];
    *line_in_file_p = span->line_in_file + (line - span->line);
    return span->name;
}

const char *akini_config_source_line(const akini_config_source_t *source,
                                     int line, size_t *length_p)
{
    const char *p = source->text;
    for (int i = 1; i < line && p[strcspn(p, "\n")] == '\n'; i++)
        p += strcspn(p, "\n") + 1;
    p += strspn(p, " \t\r");
    *length_p = strcspn(p, "\r\n");
    return p;
}
