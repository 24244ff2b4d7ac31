/* Faults of reads and of io_uring, for tests on Linux: preloaded, it fails the reads of files whose names end in ".plinth" once the
 * countdown has come to zero, and refuses rings if it was told to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long reads_left = -1;
static atomic_long reads_failed;
static atomic_int refuse_rings;
static atomic_long rings_refused;

/* After so many reads each fails; with -1 none does. */
void faults_reads(long countdown) {
    atomic_store(&reads_failed, 0);
    atomic_store(&reads_left, countdown);
}

long faults_failed(void) { return atomic_load(&reads_failed); }

void faults_rings(int refuse) { atomic_store(&refuse_rings, refuse); }

long faults_refused(void) { return atomic_load(&rings_refused); }

static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 7 && memcmp(path + length - 7, ".plinth", 7) == 0;
}

static int fails(int fd) {
    if (atomic_load(&reads_left) < 0 || !is_ours(fd)) return 0;
    long left = atomic_load(&reads_left);
    while (left > 0 && !atomic_compare_exchange_weak(&reads_left, &left, left - 1)) {}
    if (left != 0) return 0;
    atomic_fetch_add(&reads_failed, 1);
    errno = EIO;
    return 1;
}

ssize_t pread64(int fd, void *into, size_t bytes, off64_t at) {
    ssize_t (*real)(int, void *, size_t, off64_t) = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    return fails(fd) ? -1 : real(fd, into, bytes, at);
}

ssize_t read(int fd, void *into, size_t bytes) {
    ssize_t (*real)(int, void *, size_t) = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    return fails(fd) ? -1 : real(fd, into, bytes);
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup && atomic_load(&refuse_rings)) {
        atomic_fetch_add(&rings_refused, 1);
        errno = EPERM;
        return -1;
    }
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
