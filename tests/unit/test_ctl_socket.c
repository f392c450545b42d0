/* Ctl socket: folders that are trusted and those that are not, sockets that
 * are taken, replaced and listed. */
#include "roles/ctl_socket.h"
#include "runner.h"
#include "scratch_file.h"

#include <fcntl.h>
#include <sys/socket.h>

static char runtime[600];

/* A runtime folder of this test's own. */
static void enter(void)
{
    (void)snprintf(runtime, sizeof(runtime), "%s", scratch_path("run"));
    CU_ASSERT_EQUAL_FATAL(mkdir(runtime, 0700), 0);
    CU_ASSERT_EQUAL_FATAL(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    CU_ASSERT_EQUAL_FATAL(unsetenv("SLURM_JOB_ID"), 0);
}

static const char *inside(const char *name)
{
    static char path[700];
    (void)snprintf(path, sizeof(path), "%s/%s", runtime, name);
    return path;
}

static void leave(void)
{
    (void)rmdir(inside("akin"));
    CU_ASSERT_EQUAL(rmdir(runtime), 0);
    scratch_remove(runtime);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    CU_ASSERT_EQUAL_FATAL(lstat(path, &st), 0);
    return st.st_mode & 0777;
}

static void auto_path(void)
{
    akin_ctl_path_t path;
    akin_error_t err = {{0}};
    char expected[800];
    enter();
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_OK);
    (void)snprintf(expected, sizeof(expected), "%s/akin/job-%ld.sock", runtime,
                   (long)getpid());
    CU_ASSERT_STRING_EQUAL(path.text, expected);
    CU_ASSERT_EQUAL(mode_of(inside("akin")), 0700);
    /* The folder is there already now. */
    (void)setenv("SLURM_JOB_ID", "4711", 1);
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_OK);
    (void)snprintf(expected, sizeof(expected), "%s/akin/4711-%ld.sock", runtime,
                   (long)getpid());
    CU_ASSERT_STRING_EQUAL(path.text, expected);
    /* An id that would lead out of the folder is none. */
    (void)setenv("SLURM_JOB_ID", "../../4711", 1);
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(path.text, "/akin/job-"));
    leave();
}

/* Whatever others could have put there is refused by name. */
static void untrusted(void)
{
    akin_ctl_path_t path;
    akin_ctl_path_t *paths;
    size_t n;
    akin_error_t err = {{0}};
    enter();
    char elsewhere[700];
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s", inside("elsewhere"));
    CU_ASSERT_EQUAL(mkdir(elsewhere, 0700), 0);
    CU_ASSERT_EQUAL(symlink(elsewhere, inside("akin")), 0);
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_ERR_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, inside("akin")));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is a link"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "router.socket"));
    CU_ASSERT_EQUAL(akin_ctl_socket_list(&paths, &n, &err), AKIN_ERR_REFUSED);
    CU_ASSERT_PTR_NULL(paths);
    (void)unlink(inside("akin"));
    (void)rmdir(elsewhere);

    CU_ASSERT_EQUAL(mkdir(inside("akin"), 0700), 0);
    CU_ASSERT_EQUAL(chmod(inside("akin"), 0750), 0);
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_ERR_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "open to other users"));
    (void)rmdir(inside("akin"));

    int fd = open(inside("akin"), O_CREAT | O_WRONLY, 0600);
    (void)close(fd);
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_ERR_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is no folder"));
    (void)unlink(inside("akin"));

    if (geteuid() == 0) {
        CU_ASSERT_EQUAL(mkdir(inside("akin"), 0700), 0);
        CU_ASSERT_EQUAL(chown(inside("akin"), 65534, 65534), 0);
        CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_ERR_REFUSED);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another user's"));
    }
    leave();
}

/* A runtime folder that is not the user's own alone, or is none, is as none:
 * the one in /tmp is used. */
static void no_runtime(void)
{
    static const char *const values[] = {"", "relative", "/nonexistent",
                                         "/dev/null"};
    akin_ctl_path_t path;
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "/tmp/akin-%lu/",
                   (unsigned long)geteuid());
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        akin_error_t err = {{0}};
        (void)setenv("XDG_RUNTIME_DIR", values[i], 1);
        /* Whatever lies in /tmp here: it is what is spoken of. */
        const char *text =
            akin_ctl_socket_auto(&path, &err) == AKIN_OK ? path.text : err.text;
        CU_ASSERT_EQUAL(strncmp(text, expected, strlen(expected) - 1), 0);
    }
}

static void listening(void)
{
    akin_error_t err = {{0}};
    int fd, other, clients[64];
    enter();
    const mode_t old = umask(0);
    CU_ASSERT_EQUAL_FATAL(akin_ctl_socket_listen(inside("s"), &fd, &err),
                          AKIN_OK);
    (void)umask(old);
    CU_ASSERT_EQUAL(mode_of(inside("s")), 0600);
    CU_ASSERT_EQUAL(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CU_ASSERT_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(inside("s"), &other, &err),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_EQUAL(other, -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another job listens"));
    /* A full queue is told from a dead listener, without waiting. */
    int n = 0;
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && n < 64) {
        status = akin_ctl_socket_connect(inside("s"), &clients[n], &err);
        n += status == AKIN_OK;
    }
    CU_ASSERT_EQUAL(status, AKIN_ERR_BUSY);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(inside("s"), &other, &err),
                    AKIN_ERR_EXISTS);
    while (n > 0)
        (void)close(clients[--n]);
    (void)close(fd);

    /* What a dead process left is replaced. */
    CU_ASSERT_EQUAL(akin_ctl_socket_connect(inside("s"), &other, &err),
                    AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nobody listens"));
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(inside("s"), &fd, &err), AKIN_OK);
    (void)close(fd);
    (void)unlink(inside("s"));
    CU_ASSERT_EQUAL(akin_ctl_socket_connect(inside("s"), &other, &err),
                    AKIN_ERR_NOT_FOUND);

    /* A file is not, nor is one that a link leads to. */
    fd = open(inside("s"), O_CREAT | O_WRONLY, 0600);
    (void)close(fd);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(inside("s"), &fd, &err),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no socket"));
    CU_ASSERT_EQUAL(access(inside("s"), F_OK), 0);
    (void)unlink(inside("s"));
    CU_ASSERT_EQUAL(symlink("nowhere", inside("s")), 0);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(inside("s"), &fd, &err),
                    AKIN_ERR_EXISTS);
    (void)unlink(inside("s"));
    leave();
}

static void bad_paths(void)
{
    akin_error_t err = {{0}};
    char path[200] = "/tmp/";
    int fd;
    memset(path + 5, 'x', sizeof(path) - 6);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen(path, &fd, &err), AKIN_ERR_RANGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "199 bytes"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at most 107"));
    CU_ASSERT_EQUAL(akin_ctl_socket_connect(path, &fd, &err), AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen("", &fd, &err), AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_ctl_socket_listen("/nonexistent/s", &fd, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent/s"));
}

static void listing(void)
{
    static const char *const names[] = {"akin/2-1.sock", "akin/1-9.sock",
                                        "akin/dead.sock", "akin/other"};
    akin_error_t err = {{0}};
    akin_ctl_path_t *paths;
    size_t n = 9;
    int fds[4];
    enter();
    CU_ASSERT_EQUAL(mkdir(inside("akin"), 0700), 0);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL_FATAL(
            akin_ctl_socket_listen(inside(names[i]), &fds[i], &err), AKIN_OK);
    (void)close(fds[2]);
    CU_ASSERT_EQUAL_FATAL(akin_ctl_socket_list(&paths, &n, &err), AKIN_OK);
    /* Those of /tmp may be listed as well. */
    size_t at = 0;
    while (at < n && strncmp(paths[at].text, runtime, strlen(runtime)) != 0)
        at++;
    CU_ASSERT_FATAL(at + 2 <= n);
    CU_ASSERT_STRING_EQUAL(paths[at].text, inside(names[1]));
    CU_ASSERT_STRING_EQUAL(paths[at + 1].text, inside(names[0]));
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_PTR_NULL(strstr(paths[i].text, "dead"));
        CU_ASSERT_PTR_NULL(strstr(paths[i].text, "other"));
    }
    free(paths);
    for (int i = 0; i < 4; i++) {
        (void)close(fds[i]);
        (void)unlink(inside(names[i]));
    }
    leave();
}

/* What dead processes left goes when the next one comes, what is young stays:
 * its process may be about to listen. */
static void sweeping(void)
{
    static const char *const names[] = {"akin/old.sock", "akin/young.sock",
                                        "akin/live.sock", "akin/old.file"};
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    akin_error_t err = {{0}};
    akin_ctl_path_t path;
    int fds[4];
    enter();
    CU_ASSERT_EQUAL(mkdir(inside("akin"), 0700), 0);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL_FATAL(
            akin_ctl_socket_listen(inside(names[i]), &fds[i], &err), AKIN_OK);
        if (i != 1)
            CU_ASSERT_EQUAL(utimensat(AT_FDCWD, inside(names[i]), times, 0), 0);
        if (i != 2)
            (void)close(fds[i]);
    }
    CU_ASSERT_EQUAL(akin_ctl_socket_auto(&path, &err), AKIN_OK);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(access(inside(names[i]), F_OK), i == 0 ? -1 : 0);
    (void)close(fds[2]);
    for (int i = 1; i < 4; i++)
        (void)unlink(inside(names[i]));
    leave();
}

static const runner_test_t tests[] = {
    {"auto_path", auto_path},   {"untrusted", untrusted},
    {"no_runtime", no_runtime}, {"listening", listening},
    {"bad_paths", bad_paths},   {"listing", listing},
    {"sweeping", sweeping},
};

RUNNER_MAIN("ctl_socket", tests)
