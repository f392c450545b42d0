/* Replay: runs a fuzz target over its corpus without libFuzzer.
 *
 * Every file of the folder is fed as it is, cut short at up to MAX_CUTS places,
 * and with one bit or byte changed at up to MAX_FLIPS places, always the same
 * ones. Each input lies in a buffer of exactly its size, so that a sanitizer
 * sees a read behind its end. An input that takes too long counts as a hang.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((size_t)16 << 20)
#define MAX_CUTS ((size_t)256)
#define MAX_FLIPS ((size_t)256)
#define HANG_S 20U

/* What is being fed at the moment, for the message of a crash. */
static char current[4608];

static void on_death(int signal_number)
{
    static const char hang[] = "\nreplay: hang or crash on ";
    ssize_t n = write(STDERR_FILENO, hang, sizeof(hang) - 1);
    if (n > 0)
        n = write(STDERR_FILENO, current, strlen(current));
    if (n > 0)
        n = write(STDERR_FILENO, "\n", 1);
    /* The handler is gone after the first signal: die of this one. */
    (void)n;
    (void)raise(signal_number);
}

static void watch_deaths(void)
{
    /* A sanitizer reports SIGSEGV and its like better than we could. */
    static const int signals[] = {
        SIGABRT, SIGALRM,
#ifndef REPLAY_SANITIZED
        SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
#endif
    };
    struct sigaction action = {.sa_handler = on_death};
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)sigaction(signals[i], &action, NULL);
}

static void feed(const uint8_t *data, size_t size_bytes)
{
    uint8_t *exact = malloc(size_bytes != 0 ? size_bytes : 1);
    if (exact == NULL) {
        fprintf(stderr, "replay: out of memory\n");
        exit(1);
    }
    memcpy(exact, data, size_bytes);
    (void)alarm(HANG_S);
    (void)LLVMFuzzerTestOneInput(exact, size_bytes);
    (void)alarm(0);
    free(exact);
}

static void feed_variants(const char *path, uint8_t *data, size_t size_bytes)
{
    (void)snprintf(current, sizeof(current), "%s", path);
    feed(data, size_bytes);

    size_t step = size_bytes / MAX_CUTS + 1;
    for (size_t cut = 0; cut < size_bytes; cut += step) {
        (void)snprintf(current, sizeof(current), "%s cut to %zu bytes", path,
                       cut);
        feed(data, cut);
    }

    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20, 0x10};
    step = size_bytes / MAX_FLIPS + 1;
    for (size_t at = 0, i = 0; at < size_bytes; at += step, i++) {
        uint8_t mask = masks[i % sizeof(masks)];
        (void)snprintf(current, sizeof(current),
                       "%s with byte %zu changed by mask 0x%02x", path, at,
                       (unsigned)mask);
        data[at] ^= mask;
        feed(data, size_bytes);
        data[at] ^= mask;
    }
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        if (file != NULL)
            (void)fclose(file);
        return 1;
    }
    size_t size_bytes = (size_t)info.st_size;
    uint8_t *data = NULL;
    int failed = 1;
    if (size_bytes > MAX_FILE_BYTES) {
        fprintf(stderr, "replay: %s: over %zu bytes\n", path, MAX_FILE_BYTES);
        goto out;
    }
    data = malloc(size_bytes + 1);
    if (data == NULL || fread(data, 1, size_bytes, file) != size_bytes) {
        fprintf(stderr, "replay: %s: cannot be read\n", path);
        goto out;
    }
    feed_variants(path, data, size_bytes);
    failed = 0;
out:
    free(data);
    (void)fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    watch_deaths();
    (void)snprintf(current, sizeof(current), "the empty input");
    feed((const uint8_t *)"", 0);

    struct dirent **entries = NULL;
    int n_entries = scandir(argv[1], &entries, NULL, alphasort);
    if (n_entries < 0) {
        fprintf(stderr, "replay: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    int n_files = 0;
    int failed = 0;
    for (int i = 0; i < n_entries; i++) {
        if (entries[i]->d_name[0] != '.') {
            char path[4352];
            (void)snprintf(path, sizeof(path), "%s/%s", argv[1],
                           entries[i]->d_name);
            failed |= replay_file(path);
            n_files++;
        }
        free(entries[i]);
    }
    free(entries);
    if (n_files == 0) {
        fprintf(stderr, "replay: %s: no corpus file\n", argv[1]);
        return 1;
    }
    printf("replay: %d files from %s\n", n_files, argv[1]);
    return failed;
}
