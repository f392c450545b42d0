/* Ctl socket: folders, listening, connecting. */
#include "roles/ctl_socket.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(((struct sockaddr_un *)NULL)->sun_path) ==
                   AKIN_CTL_PATH_BYTES,
               "sun_path has another size");

/* Clients that wait to be accepted. */
#define BACKLOG 16

/* Entries of a folder that are looked at. */
#define MAX_VISITED 10000u

/* Seconds after which a socket at which nobody listens is what a dead process
 * left. */
#define OLD_S 60

#define N_FOLDERS 2u

/* A folder that nobody else can put anything into. */
static int is_own_folder(const struct stat *st)
{
    return S_ISDIR(st->st_mode) && st->st_uid == geteuid() &&
           (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Folder i of those that are looked at; 0: it is left out. */
static int folder_path(unsigned i, char *path, size_t bytes)
{
    struct stat st;
    int n;
    if (i == 0) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        if (runtime == NULL || runtime[0] != '/' || stat(runtime, &st) != 0 ||
            !is_own_folder(&st))
            return 0;
        n = snprintf(path, bytes, "%s/akin", runtime);
    } else {
        n = snprintf(path, bytes, "/tmp/akin-%lu", (unsigned long)geteuid());
    }
    return n > 0 && (size_t)n < bytes;
}

static akin_status_t check_folder(const char *path, akin_error_t *err)
{
    struct stat st;
    const char *why = NULL;
    if (lstat(path, &st) != 0)
        return akin_error_set(err, akin_status_from_errno(errno), "%s: %s",
                              path, strerror(errno));
    if (S_ISLNK(st.st_mode))
        why = "is a link";
    else if (!S_ISDIR(st.st_mode))
        why = "is no folder";
    else if (st.st_uid != geteuid())
        why = "is another user's";
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        why = "is open to other users";
    if (why == NULL)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_REFUSED,
                          "%s %s, control sockets are not put there: remove "
                          "it, or name another place with router.socket",
                          path, why);
}

static akin_status_t make_address(const char *path, struct sockaddr_un *address,
                                  akin_error_t *err)
{
    const size_t bytes = strlen(path);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (bytes == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the path of a socket is empty");
    if (bytes >= sizeof(address->sun_path))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "%.40s...: the path has %zu bytes, that of a "
                              "UNIX socket at most %zu: choose a shorter one",
                              path, bytes, sizeof(address->sun_path) - 1);
    memcpy(address->sun_path, path, bytes + 1);
    return AKIN_OK;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The caller's errno says why. */
static akin_status_t fail(const char *path, const char *what, akin_error_t *err)
{
    return akin_error_set(err, akin_status_from_errno(errno),
                          "%s: cannot %s: %s", path, what, strerror(errno));
}

akin_status_t akin_ctl_socket_connect(const char *path, int *fd_p,
                                      akin_error_t *err)
{
    struct sockaddr_un address;
    *fd_p = -1;
    akin_status_t status = make_address(path, &address, err);
    if (status != AKIN_OK)
        return status;
    int fd = new_socket();
    if (fd < 0)
        return fail(path, "make a socket", err);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        *fd_p = fd;
        return AKIN_OK;
    }
    if (errno == ECONNREFUSED)
        status =
            akin_error_set(err, AKIN_ERR_PEER,
                           "%s: nobody listens there: the job is over", path);
    else if (errno == EAGAIN)
        status = akin_error_set(err, AKIN_ERR_BUSY,
                                "%s: too many wait there to be heard", path);
    else
        status = fail(path, "connect", err);
    (void)close(fd);
    return status;
}

/* Takes what a dead process left out of the way. */
static akin_status_t make_room(const char *path, akin_error_t *err)
{
    struct stat st;
    int fd;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? AKIN_OK : fail(path, "look", err);
    if (!S_ISSOCK(st.st_mode))
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "%s exists and is no socket: name another place "
                              "with router.socket",
                              path);
    akin_status_t status = akin_ctl_socket_connect(path, &fd, err);
    if (status == AKIN_ERR_PEER)
        return unlink(path) == 0 || errno == ENOENT
                   ? AKIN_OK
                   : fail(path, "remove an old socket", err);
    if (status == AKIN_OK)
        (void)close(fd);
    else if (status != AKIN_ERR_BUSY)
        return status;
    return akin_error_set(err, AKIN_ERR_EXISTS,
                          "%s: another job listens there: name another place "
                          "with router.socket",
                          path);
}

akin_status_t akin_ctl_socket_listen(const char *path, int *fd_p,
                                     akin_error_t *err)
{
    struct sockaddr_un address;
    *fd_p = -1;
    akin_status_t status = make_address(path, &address, err);
    if (status == AKIN_OK)
        status = make_room(path, err);
    if (status != AKIN_OK)
        return status;
    int fd = new_socket();
    if (fd < 0)
        return fail(path, "make a socket", err);
    /* Linux gives the path the mode that the socket has when it is bound, so
     * that there is no moment in which others could connect. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
        status = fail(path, "set the mode", err);
        goto err_close;
    }
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        status = fail(path, "bind", err);
        goto err_close;
    }
    if (listen(fd, BACKLOG) != 0) {
        status = fail(path, "listen", err);
        goto err_unlink;
    }
    *fd_p = fd;
    return AKIN_OK;

err_unlink:
    (void)unlink(path);
err_close:
    (void)close(fd);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const akin_ctl_path_t *)a)->text,
                  ((const akin_ctl_path_t *)b)->text);
}

typedef int (*visit_fn_t)(void *arg, const akin_ctl_path_t *path,
                          akin_status_t reached);

/* Tells of each socket in a folder whether somebody listens there, until the
 * callback says 0. */
static akin_status_t visit(const char *folder, visit_fn_t fn, void *arg,
                           akin_error_t *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    unsigned n = 0;
    if (dir == NULL)
        return fail(folder, "read the folder", err);
    while (n++ < MAX_VISITED && (entry = readdir(dir)) != NULL) {
        const size_t length = strlen(entry->d_name);
        akin_ctl_path_t path;
        int fd;
        int bytes = snprintf(path.text, sizeof(path.text), "%s/%s", folder,
                             entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".sock") != 0 ||
            bytes < 0 || (size_t)bytes >= sizeof(path.text))
            continue;
        akin_status_t reached = akin_ctl_socket_connect(path.text, &fd, NULL);
        if (reached == AKIN_OK)
            (void)close(fd);
        if (!fn(arg, &path, reached))
            break;
    }
    (void)closedir(dir);
    return AKIN_OK;
}

/* A job that is just beginning has its socket for a moment before it listens.
 */
static int sweep(void *arg, const akin_ctl_path_t *path, akin_status_t reached)
{
    struct stat st;
    (void)arg;
    if (reached == AKIN_ERR_PEER && lstat(path->text, &st) == 0 &&
        S_ISSOCK(st.st_mode) && time(NULL) - st.st_mtime >= OLD_S)
        (void)unlink(path->text);
    return 1;
}

akin_status_t akin_ctl_socket_auto(akin_ctl_path_t *path_p, akin_error_t *err)
{
    char folder[AKIN_CTL_PATH_BYTES];
    const char *job = getenv("SLURM_JOB_ID");
    unsigned i = 0;
    while (i + 1 < N_FOLDERS && !folder_path(i, folder, sizeof(folder)))
        i++;
    if (i + 1 == N_FOLDERS)
        (void)folder_path(i, folder, sizeof(folder));
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST)
        return akin_error_set(err, akin_status_from_errno(errno),
                              "%s: cannot create the folder: %s", folder,
                              strerror(errno));
    akin_status_t status = check_folder(folder, err);
    if (status != AKIN_OK)
        return status;
    (void)visit(folder, sweep, NULL, NULL);
    /* A job id is part of a file name: it may not lead elsewhere. */
    if (job == NULL || job[0] == '\0' ||
        job[strspn(job, "0123456789_-abcdefghijklmnopqrstuvwxyz")] != '\0')
        job = "job";
    char path[AKIN_CTL_PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s/%s-%ld.sock", folder, job,
                     (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(path))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "%s: too long a folder for a UNIX socket, whose "
                              "path has at most %d bytes: name another place "
                              "with router.socket",
                              folder, AKIN_CTL_PATH_BYTES - 1);
    memcpy(path_p->text, path, sizeof(path));
    return AKIN_OK;
}

typedef struct listing {
    akin_ctl_path_t *paths; /* [n] */
    size_t n;
    int failed;
} listing_t;

static int append(void *arg, const akin_ctl_path_t *path, akin_status_t reached)
{
    listing_t *l = arg;
    if (reached != AKIN_OK && reached != AKIN_ERR_BUSY)
        return 1;
    akin_ctl_path_t *more = realloc(l->paths, (l->n + 1) * sizeof(*more));
    if (more == NULL) {
        l->failed = 1;
        return 0;
    }
    l->paths = more;
    more[l->n++] = *path;
    return 1;
}

/* Appends what listens in one folder. */
static akin_status_t list_folder(const char *folder, listing_t *l,
                                 akin_error_t *err)
{
    struct stat st;
    if (lstat(folder, &st) != 0 && errno == ENOENT)
        return AKIN_OK;
    akin_status_t status = check_folder(folder, err);
    if (status == AKIN_OK)
        status = visit(folder, append, l, err);
    if (status == AKIN_OK && l->failed)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    return status;
}

akin_status_t akin_ctl_socket_list(akin_ctl_path_t **paths_p, size_t *n_p,
                                   akin_error_t *err)
{
    listing_t l = {0};
    akin_status_t status = AKIN_OK;
    *paths_p = NULL;
    *n_p = 0;
    for (unsigned i = 0; i < N_FOLDERS && status == AKIN_OK; i++) {
        char folder[AKIN_CTL_PATH_BYTES];
        if (folder_path(i, folder, sizeof(folder)))
            status = list_folder(folder, &l, err);
    }
    if (status != AKIN_OK || l.n == 0) {
        free(l.paths);
        return status;
    }
    qsort(l.paths, l.n, sizeof(*l.paths), by_name);
    *paths_p = l.paths;
    *n_p = l.n;
    return AKIN_OK;
}
