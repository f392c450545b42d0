/* Node XML: what is looked at in hwloc's XML before hwloc reads it. */
#include "launch/node_xml.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* hwloc recurses over elements; a machine needs some 30 levels. */
enum { MAX_DEPTH = 128 };

#define WAY_OUT                                                                \
    "write it on that machine with akin info --xml, or with lstopo of hwloc "  \
    "2: lstopo --of xml FILE.xml"

static akin_status_t read_all(int fd, const char *path, char *text, size_t room,
                              size_t *bytes_p, akin_error_t *err)
{
    size_t bytes = 0;
    while (bytes < room) {
        const ssize_t n = read(fd, text + bytes, room - bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return akin_error_set(err, AKIN_ERR_IO, "%s: cannot be read: %s",
                                  path, strerror(errno));
        if (n == 0)
            break;
        bytes += (size_t)n;
    }
    *bytes_p = bytes;
    return AKIN_OK;
}

akin_status_t akini_node_xml_load(const char *path, char **text_p,
                                  size_t *bytes_p, akin_error_t *err)
{
    struct stat st;
    *text_p = NULL;
    *bytes_p = 0;
    /* A pipe that nobody writes to must not hold this up. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return akin_error_set(
            err, errno == ENOENT ? AKIN_ERR_NOT_FOUND : AKIN_ERR_IO,
            "%s: cannot be opened: %s", path, strerror(errno));
    akin_status_t status = AKIN_OK;
    char *text = NULL;
    size_t bytes = 0;
    if (fstat(fd, &st) != 0)
        status =
            akin_error_set(err, AKIN_ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: not a file, but hwloc XML is needed: %s",
                                path, WAY_OUT);
    else if (st.st_size > AKINI_NODE_XML_BYTES)
        status =
            akin_error_set(err, AKIN_ERR_FORMAT,
                           "%s: %lld bytes, more than any machine's "
                           "hwloc XML has (%d)",
                           path, (long long)st.st_size, AKINI_NODE_XML_BYTES);
    else if ((text = malloc((size_t)st.st_size + 1)) == NULL)
        status = AKIN_ERR_NOMEM;
    else
        status = read_all(fd, path, text, (size_t)st.st_size, &bytes, err);
    (void)close(fd);
    if (status != AKIN_OK || text == NULL) {
        free(text);
        return status;
    }
    text[bytes] = '\0';
    *text_p = text;
    *bytes_p = bytes;
    return AKIN_OK;
}

static akin_status_t cut_off(const char *origin, akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_FORMAT,
                          "%s: the XML ends before its elements do, it was "
                          "cut off: %s",
                          origin, WAY_OUT);
}

/* The end of a tag that starts at `tag`, past its '>'; NULL if there is none.
 * Quoted values may hold a '>'. */
static char *tag_end(char *tag)
{
    char quote = '\0';
    for (char *c = tag; *c != '\0'; c++)
        if (quote != '\0')
            quote = *c == quote ? '\0' : quote;
        else if (*c == '"' || *c == '\'')
            quote = *c;
        else if (*c == '>')
            return c + 1;
    return NULL;
}

static int starts(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* Past a comment, which is filled with spaces; NULL: it does not end. */
static char *blank_comment(char *start)
{
    char *end = strstr(start + 4, "-->");
    if (end == NULL)
        return NULL;
    (void)memset(start, ' ', (size_t)(end + 3 - start));
    return end + 3;
}

/* The topology element's tag, comments before it blanked out; NULL: none. */
static char *find_topology(char *text)
{
    for (char *c = strchr(text, '<'); c != NULL; c = strchr(c, '<')) {
        if (starts(c, "<topology") && strchr(" \t\r\n>/", c[9]) != NULL)
            return c;
        if (starts(c, "<!--"))
            c = blank_comment(c);
        else if (starts(c, "<?") || starts(c, "<!"))
            c = tag_end(c);
        else
            return NULL;
        if (c == NULL)
            return NULL;
    }
    return NULL;
}

/* The tag's version attribute, "" if it has none. */
static void read_version(const char *tag, const char *end, char *version,
                         size_t room)
{
    version[0] = '\0';
    for (const char *c = tag; c < end; c++) {
        if (!isspace((unsigned char)c[-1]) || !starts(c, "version"))
            continue;
        const char *value = c + strlen("version");
        value += strspn(value, " \t\r\n=");
        if (value >= end || (*value != '"' && *value != '\''))
            continue;
        size_t n = strcspn(value + 1, "\"'");
        if (n >= room)
            n = room - 1;
        (void)memcpy(version, value + 1, n);
        version[n] = '\0';
        return;
    }
}

static akin_status_t check_version(const char *tag, const char *end,
                                   const char *origin, akin_error_t *err)
{
    char version[16];
    read_version(tag, end, version, sizeof(version));
    for (char *c = version; *c != '\0'; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    if (starts(version, "2."))
        return AKIN_OK;
    if (version[0] == '\0')
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: XML of hwloc 1 (its topology has no "
                              "version), but that of hwloc 2 is needed: %s",
                              origin, WAY_OUT);
    return akin_error_set(err, AKIN_ERR_FORMAT,
                          "%s: XML of hwloc version %s, but that of hwloc 2 "
                          "is needed: %s",
                          origin, version, WAY_OUT);
}

/* Elements open and close each other up to the end of the topology, which the
 * text is cut at. */
static akin_status_t check_elements(char *xml, const char *origin,
                                    akin_error_t *err)
{
    uint32_t depth = 0;
    for (char *c = xml; (c = strchr(c, '<')) != NULL;) {
        if (starts(c, "<!--")) {
            if ((c = blank_comment(c)) == NULL)
                return cut_off(origin, err);
            continue;
        }
        char *end = tag_end(c);
        if (end == NULL)
            return cut_off(origin, err);
        if (c[1] == '!' || c[1] == '?')
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: a declaration within the topology, "
                                  "which hwloc does not write: %s",
                                  origin, WAY_OUT);
        if (c[1] == '/')
            depth--;
        else if (end[-2] != '/')
            depth++;
        if (depth > MAX_DEPTH)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: elements are nested more than %d deep, "
                                  "this is no machine",
                                  origin, MAX_DEPTH);
        c = end;
        if (depth == 0) {
            *c = '\0';
            return AKIN_OK;
        }
    }
    return cut_off(origin, err);
}

akin_status_t akini_node_xml_check(const char *text, size_t bytes,
                                   const char *origin, char **xml_p,
                                   size_t *bytes_p, akin_error_t *err)
{
    *xml_p = NULL;
    *bytes_p = 0;
    if (bytes > AKINI_NODE_XML_BYTES || memchr(text, '\0', bytes) != NULL)
        return akin_error_set(
            err, AKIN_ERR_FORMAT, "%s: not hwloc XML, it has %s: %s", origin,
            bytes > AKINI_NODE_XML_BYTES ? "too many bytes" : "NUL bytes",
            WAY_OUT);
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return AKIN_ERR_NOMEM;
    (void)memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    char *topology = find_topology(copy);
    akin_status_t status;
    if (topology == NULL) {
        status = akin_error_set(
            err, AKIN_ERR_FORMAT, "%s: %s: %s", origin,
            bytes == 0 ? "empty, but hwloc XML is needed"
                       : "not hwloc XML, there is no topology in it",
            WAY_OUT);
    } else {
        const char *end = tag_end(topology);
        status = end == NULL ? cut_off(origin, err)
                             : check_version(topology + 1, end, origin, err);
        if (status == AKIN_OK)
            status = check_elements(topology, origin, err);
    }
    if (status != AKIN_OK) {
        free(copy);
        return status;
    }
    const size_t n = strlen(topology) + 1;
    (void)memmove(copy, topology, n);
    *xml_p = copy;
    *bytes_p = n;
    return AKIN_OK;
}
