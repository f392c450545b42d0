/* Scratch files for tests: written whole, read whole, in a folder of their
 * own below TMPDIR. */
#ifndef AKIN_TESTS_UNIT_SCRATCH_FILE_H
#define AKIN_TESTS_UNIT_SCRATCH_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[512];

/* Path of a file in the folder of this process; one of four buffers. */
static inline const char *scratch_path(const char *name)
{
    static char paths[4][1024];
    static int next;
    if (scratch_folder[0] == '\0') {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(scratch_folder, sizeof(scratch_folder),
                       "%s/akin-test-XXXXXX", tmp == NULL ? "/tmp" : tmp);
        if (mkdtemp(scratch_folder) == NULL)
            abort();
    }
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", scratch_folder, name);
    return path;
}

static inline void scratch_write(const char *path, const void *data,
                                 size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes ||
        fclose(file) != 0)
        abort();
}

/* Whole content, NUL-terminated, to be freed; NULL if there is no file. */
static inline char *scratch_read(const char *path, size_t *bytes_p)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    struct stat st;
    if (fstat(fileno(file), &st) != 0)
        abort();
    size_t bytes = (size_t)st.st_size;
    char *data = malloc(bytes + 1);
    if (data == NULL || fread(data, 1, bytes, file) != bytes)
        abort();
    data[bytes] = '\0';
    (void)fclose(file);
    *bytes_p = bytes;
    return data;
}

/* Remove a file and, when it was the last one, the folder. */
static inline void scratch_remove(const char *path)
{
    (void)unlink(path);
    (void)rmdir(scratch_folder);
    if (access(scratch_folder, F_OK) != 0)
        scratch_folder[0] = '\0';
}

#endif
