/* Supervised: what a rank tells its supervisor, through memory of both. */
#include "net/supervised.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_TICKET (-1)
#define NO_END (-1)
/* A rank that changes its terms all the time is looked at another time. */
#define LOOK_TRIES 1000

/* Terms and where the ticket is: they come into force together. */
typedef struct notice {
    akin_supervised_terms_t terms;
    uint64_t ticket_bytes;
    int32_t ticket_file; /* of ticket_fds, or NO_TICKET */
} notice_t;

#define NOTICE_WORDS ((sizeof(notice_t) + 7) / 8)

/*
 * A rank may be killed between any two instructions. Of two places a notice is
 * written to the one that is not in force, and so is a ticket; counting up
 * `version` puts them in force.
 */
typedef struct akini_supervised_board {
    /* Notices so far; notice v lies in place v % 2. */
    _Atomic(uint64_t) version;
    _Atomic(uint64_t) notices[2][NOTICE_WORDS];
    _Atomic(int64_t) end_limit_ns; /* 0: none; or NO_END */
    /* On a line of its own: the rank writes it all the time. */
    _Alignas(64) _Atomic(uint32_t) beat;
} board_t;

static const akini_supervised_t *own; /* NULL: without a supervisor */

static void notice_write(board_t *board, uint64_t version,
                         const notice_t *notice)
{
    uint64_t words[NOTICE_WORDS] = {0};
    memcpy(words, notice, sizeof(*notice));
    /* Released one by one: whoever sees a word of these sees that the former
     * notice of this place is not in force any more. */
    for (size_t i = 0; i < NOTICE_WORDS; i++)
        atomic_store_explicit(&board->notices[version % 2][i], words[i],
                              memory_order_release);
    atomic_store_explicit(&board->version, version, memory_order_release);
}

/* The notice in force; returns its version, 0 if there is none or it changes
 * too fast, with nothing written. */
static uint64_t notice_read(board_t *board, notice_t *notice)
{
    for (int i = 0; i < LOOK_TRIES; i++) {
        uint64_t words[NOTICE_WORDS];
        uint64_t version =
            atomic_load_explicit(&board->version, memory_order_acquire);
        if (version == 0)
            return 0;
        for (size_t w = 0; w < NOTICE_WORDS; w++)
            words[w] = atomic_load_explicit(&board->notices[version % 2][w],
                                            memory_order_acquire);
        if (atomic_load_explicit(&board->version, memory_order_relaxed) ==
            version) {
            memcpy(notice, words, sizeof(*notice));
            return version;
        }
    }
    return 0;
}

akin_status_t akini_supervised_init(akini_supervised_t *supervised,
                                    akin_error_t *err)
{
    *supervised = (akini_supervised_t){
        .ticket_fds = {-1, -1},
        .supervisor = getpid(),
    };
    void *memory = mmap(NULL, sizeof(board_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return akin_error_set(err, AKIN_ERR_NOMEM, "mmap: %s", strerror(errno));
    supervised->board = memory;
    atomic_store(&supervised->board->end_limit_ns, NO_END);
    for (int i = 0; i < 2; i++) {
        supervised->ticket_fds[i] = memfd_create("akin-ticket", MFD_CLOEXEC);
        if (supervised->ticket_fds[i] < 0) {
            akin_status_t status = akin_error_set(
                err, AKIN_ERR_IO, "memfd_create: %s", strerror(errno));
            akini_supervised_cleanup(supervised);
            return status;
        }
    }
    return AKIN_OK;
}

void akini_supervised_cleanup(akini_supervised_t *supervised)
{
    for (int i = 0; i < 2; i++)
        if (supervised->ticket_fds[i] >= 0)
            (void)close(supervised->ticket_fds[i]);
    if (supervised->board != NULL)
        (void)munmap(supervised->board, sizeof(*supervised->board));
    *supervised = (akini_supervised_t){.ticket_fds = {-1, -1}};
}

void akini_supervised_begin(akini_supervised_t *supervised)
{
    board_t *board = supervised->board;
    atomic_store(&board->end_limit_ns, NO_END);
    atomic_store(&board->beat, 0);
    supervised->begun = atomic_load(&board->version);
}

void akini_supervised_enter(const akini_supervised_t *supervised)
{
    own = supervised;
}

void akini_supervised_look(akini_supervised_t *supervised,
                           akini_supervised_signs_t *signs)
{
    board_t *board = supervised->board;
    notice_t notice;
    uint64_t version = notice_read(board, &notice);
    if (version != 0) {
        signs->terms = notice.terms;
        signs->terms.role[sizeof(signs->terms.role) - 1] = '\0';
    }
    signs->is_armed = atomic_load(&board->version) != supervised->begun;
    signs->has_beaten = atomic_exchange(&board->beat, 0) != 0;
    int64_t end_limit_ns = atomic_load(&board->end_limit_ns);
    signs->is_ending = end_limit_ns != NO_END;
    signs->end_limit_ns = signs->is_ending ? end_limit_ns : 0;
}

akin_status_t akini_supervised_get_ticket(const akini_supervised_t *supervised,
                                          void **ticket_p,
                                          size_t *ticket_bytes_p)
{
    *ticket_p = NULL;
    *ticket_bytes_p = 0;
    notice_t notice;
    if (notice_read(supervised->board, &notice) == 0 ||
        notice.ticket_file == NO_TICKET)
        return AKIN_OK;
    /* A rank that went mad may have left anything. */
    if (notice.ticket_file != 0 && notice.ticket_file != 1)
        return AKIN_ERR_IO;
    int fd = supervised->ticket_fds[notice.ticket_file];
    struct stat state;
    if (fstat(fd, &state) != 0 ||
        (uint64_t)state.st_size != notice.ticket_bytes)
        return AKIN_ERR_IO;
    size_t bytes = (size_t)notice.ticket_bytes;
    unsigned char *ticket = malloc(bytes > 0 ? bytes : 1);
    if (ticket == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t got = 0; got < bytes;) {
        ssize_t n = pread(fd, ticket + got, bytes - got, (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(ticket);
            return AKIN_ERR_IO;
        }
        got += (size_t)n;
    }
    *ticket_p = ticket;
    *ticket_bytes_p = bytes;
    return AKIN_OK;
}

/* The file has no ticket that is in force. */
static akin_status_t ticket_write(int fd, const void *ticket, size_t bytes)
{
    int failed = ftruncate(fd, 0) != 0;
    for (size_t put = 0; !failed && put < bytes;) {
        ssize_t n = pwrite(fd, (const unsigned char *)ticket + put, bytes - put,
                           (off_t)put);
        if (n > 0)
            put += (size_t)n;
        else
            failed = n == 0 || errno != EINTR;
    }
    if (!failed)
        return AKIN_OK;
    akin_status_t status =
        errno == ENOSPC || errno == ENOMEM ? AKIN_ERR_NOMEM : AKIN_ERR_IO;
    (void)ftruncate(fd, 0);
    return status;
}

/* The supervisor may sleep until its next look; the limits are new. A SIGCHLD
 * without a death only wakes it. */
static void wake(void)
{
    (void)kill(own->supervisor, SIGCHLD);
}

akin_status_t akin_supervised_arm(const akin_supervised_terms_t *terms,
                                  const void *ticket, size_t ticket_bytes)
{
    if (own == NULL)
        return AKIN_OK;
    board_t *board = own->board;
    notice_t notice = {.ticket_file = NO_TICKET};
    uint64_t version = notice_read(board, &notice);
    int former = notice.ticket_file == 0 || notice.ticket_file == 1
                     ? notice.ticket_file
                     : NO_TICKET;
    notice.terms = *terms;
    if (ticket != NULL) {
        notice.ticket_file = former == 0;
        notice.ticket_bytes = ticket_bytes;
        akin_status_t status = ticket_write(own->ticket_fds[notice.ticket_file],
                                            ticket, ticket_bytes);
        if (status != AKIN_OK)
            return status;
    }
    akin_supervised_beat();
    notice_write(board, version + 1, &notice);
    if (ticket != NULL && former != NO_TICKET)
        (void)ftruncate(own->ticket_fds[former], 0);
    wake();
    return AKIN_OK;
}

void akin_supervised_beat(void)
{
    if (own != NULL)
        atomic_store_explicit(&own->board->beat, 1, memory_order_relaxed);
}

void akin_supervised_end(int64_t limit_ns)
{
    if (own == NULL)
        return;
    atomic_store(&own->board->end_limit_ns, limit_ns > 0 ? limit_ns : 0);
    wake();
}
