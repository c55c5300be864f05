/* Injects failures of system calls. Preloaded into genuma (LD_PRELOAD), it counts the calls by kind and lets selected calls fail.
 *
 * Environment variables:
 *   GENUMA_FAULT_PROGRAM  name of the program to which faults are injected; other programs, such as an aligner that genuma starts,
 *                         run unchanged
 *   GENUMA_FAULT_UNDER    path prefixes, separated by ':'; calls on files elsewhere are neither counted nor changed
 *   GENUMA_FAULT_PAGE     file of sizeof(struct page) bytes with the counters, which remain when the process is killed
 *   GENUMA_FAULT          kind:what:at:every: the call of this kind with number `at` (from 1) fails, and, if `every` is not 0, each
 *                         `every`-th call after it; `what` is an errno as a number, `short`, `kill`, or a call that succeeds after the
 *                         signal `term`, `int` or `hup` was sent to the program, or after `replace`. Without it calls are only counted.
 *   GENUMA_FAULT_REPLACED, GENUMA_FAULT_REPLACEMENT
 *                         paths: `replace` renames the second file to the first
 *   GENUMA_FAULT_TRACE    file to which a line is appended for each write, fsync, rename and hard link: `write`, `sync`, `rename` or `link`,
 *                         and the path, or the old and the new path, each after a tab
 *   GENUMA_FAULT_STDOUT   if set, faults are injected into writes to standard output too, if it is a file
 *
 * Memory maps, allocations, threads and random bytes have no path: all calls of the program's own code are counted. Allocations of the C
 * library for itself are not, because the library aborts when one fails.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* In the order of `SystemCallKind` in src/fault.rs. */
enum kind { OPEN, READ, WRITE, SYNC, RENAME, UNLINK, LINK, MKDIR, STAT, SEEK, TRUNCATE, RESERVE, COPY, LIST, LOCK, RANDOM, MAP, ALLOC, THREAD, KINDS };
static const char *const kinds[KINDS] = {"open", "read", "write", "sync", "rename", "unlink", "link", "mkdir", "stat", "seek",
	"truncate", "reserve", "copy", "list", "lock", "random", "map", "alloc", "thread"};

/* src/shim.rs reads this layout. */
struct page {
	_Atomic uint64_t calls[32]; /* by kind */
	_Atomic uint64_t fired;
	_Atomic uint64_t named; /* whether `path` has been taken */
	char path[1024];        /* of the first call that failed */
};

enum { NONE = 0, SHORT = -1, KILL = -2, REPLACE = -3, SIGNAL = -4 };

static struct page *page;
static int armed, meant_kind = -1, what, signal_number, trace = -1;
static uint64_t at, every;
static char under[8][512];
static size_t unders;

enum { FDS = 4096, NAME = 240 };
/* Paths of the open files to which faults are injected; empty for all others. */
static char fds[FDS][NAME];

static void next_of(void *slot, const char *name)
{
	void **function = slot;
	if (*function == NULL)
		*function = dlsym(RTLD_NEXT, name);
}

#define REAL(result, name, ...)                     \
	static result (*real)(__VA_ARGS__);         \
	next_of(&real, #name)

static int path_is_meant(const char *path)
{
	for (size_t i = 0; i < unders; i++)
		if (strncmp(path, under[i], strlen(under[i])) == 0)
			return 1;
	return 0;
}

static const char *open_path(int fd) { return fd >= 0 && fd < FDS && fds[fd][0] ? fds[fd] : NULL; }

/* The path of a name relative to an open folder, NULL if it is not meant. */
static const char *meant(int dir, const char *path)
{
	if (!armed || path == NULL)
		return NULL;
	if (path[0] == '/')
		return path_is_meant(path) ? path : NULL;
	if (path[0] == 0)
		return open_path(dir);
	return dir == AT_FDCWD ? NULL : (open_path(dir) ? path : NULL);
}

static void note_open(int fd, const char *path)
{
	if (fd < 0 || fd >= FDS)
		return;
	if (path)
		snprintf(fds[fd], NAME, "%s", path);
	else
		fds[fd][0] = 0;
}

static void die(void)
{
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	for (;;)
		pause();
}

/* Renames a file over an input, once. */
static void replace_input(void)
{
	const char *input = getenv("GENUMA_FAULT_REPLACED"), *replacement = getenv("GENUMA_FAULT_REPLACEMENT");
	if (input && replacement)
		syscall(SYS_renameat2, AT_FDCWD, replacement, AT_FDCWD, input, 0);
}

/* Appends a line to the trace. */
static void note_call(const char *word, const char *path, const char *to)
{
	char line[2400];
	if (trace < 0 || path == NULL)
		return;
	int length = snprintf(line, sizeof line, "%s\t%s%s%s\n", word, path, to ? "\t" : "", to ? to : "");
	if (length > 0 && (size_t)length < sizeof line)
		syscall(SYS_write, trace, line, length);
}

/* Counts a call: 0 to let it pass, else an errno or SHORT or KILL (who asks must call die). */
static int strike(enum kind kind, const char *path)
{
	if (!armed)
		return NONE;
	uint64_t number = atomic_fetch_add(&page->calls[kind], 1) + 1;
	if ((int)kind != meant_kind || number < at || (number > at && (every == 0 || (number - at) % every != 0)))
		return NONE;
	atomic_fetch_add(&page->fired, 1);
	if (path && atomic_fetch_add(&page->named, 1) == 0)
		snprintf(page->path, sizeof page->path, "%s", path);
	if (what == SIGNAL)
		syscall(SYS_kill, syscall(SYS_getpid), signal_number);
	if (what == REPLACE)
		replace_input();
	return what == SIGNAL || what == REPLACE ? NONE : what;
}

/* For calls that cannot be done in part. 1: it failed, errno is set. */
static int fails(enum kind kind, const char *path)
{
	int struck = strike(kind, path);
	if (struck == KILL)
		die();
	if (struck > 0)
		errno = struck;
	return struck > 0;
}

/* Where the program's own code lies. */
static uintptr_t code_begin = UINTPTR_MAX, code_end;

/* The first object is the program. */
static int find_code(struct dl_phdr_info *object, size_t size, void *data)
{
	(void)size, (void)data;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		uintptr_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, to = from + object->dlpi_phdr[i].p_memsz;
		if (object->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		code_begin = from < code_begin ? from : code_begin;
		code_end = to > code_end ? to : code_end;
	}
	return 1;
}

__attribute__((constructor)) static void arm(void)
{
	const char *program = getenv("GENUMA_FAULT_PROGRAM"), *file = getenv("GENUMA_FAULT_PAGE");
	const char *prefixes = getenv("GENUMA_FAULT_UNDER"), *fault = getenv("GENUMA_FAULT");
	char self[1024] = {0};
	if (!program || !file || !prefixes || readlink("/proc/self/exe", self, sizeof self - 1) < 0 || strcmp(self, program) != 0)
		return;
	while (*prefixes && unders < 8) {
		size_t length = strcspn(prefixes, ":");
		if (length > 0 && length < sizeof under[0])
			memcpy(under[unders++], prefixes, length);
		prefixes += length + (prefixes[length] == ':');
	}
	int fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
	void *shared = (void *)syscall(SYS_mmap, NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (fd < 0 || shared == MAP_FAILED)
		return;
	page = shared;
	if (fault) {
		char kind[16] = {0}, word[16] = {0};
		unsigned long long first = 0, step = 0;
		if (sscanf(fault, "%15[^:]:%15[^:]:%llu:%llu", kind, word, &first, &step) != 4)
			return;
		for (int i = 0; i < KINDS; i++)
			if (strcmp(kind, kinds[i]) == 0)
				meant_kind = i;
		signal_number = strcmp(word, "term") == 0 ? SIGTERM : strcmp(word, "int") == 0 ? SIGINT : strcmp(word, "hup") == 0 ? SIGHUP : 0;
		what = strcmp(word, "short") == 0 ? SHORT
			: strcmp(word, "kill") == 0 ? KILL
			: strcmp(word, "replace") == 0 ? REPLACE
			: signal_number != 0 ? SIGNAL
			: atoi(word);
		at = first;
		every = step;
	}
	const char *trace_file = getenv("GENUMA_FAULT_TRACE");
	if (trace_file)
		trace = syscall(SYS_openat, AT_FDCWD, trace_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	dl_iterate_phdr(find_code, NULL);
	if (getenv("GENUMA_FAULT_STDOUT"))
		note_open(1, "standard output");
	armed = 1;
}

/* ---- files */

#define MODE(flags, mode)                               \
	mode_t mode = 0;                                \
	if ((flags) & (O_CREAT | O_TMPFILE)) {          \
		va_list list;                           \
		va_start(list, flags);                  \
		mode = va_arg(list, mode_t);            \
		va_end(list);                           \
	}

static int open_at(int dir, const char *name, int flags, mode_t mode)
{
	const char *path = meant(dir, name);
	if (path && fails(OPEN, path))
		return -1;
	int fd = syscall(SYS_openat, dir, name, flags, mode);
	note_open(fd, path);
	return fd;
}

int open(const char *name, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, name, flags, mode); }
int openat(int dir, const char *name, int flags, ...) { MODE(flags, mode) return open_at(dir, name, flags, mode); }
int openat64(int dir, const char *name, int flags, ...) { MODE(flags, mode) return open_at(dir, name, flags, mode); }
int creat(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd)
{
	note_open(fd, NULL);
	REAL(int, close, int);
	return real(fd);
}

static int duplicate(int fd, int command, void *argument)
{
	int made = syscall(SYS_fcntl, fd, command, argument);
	if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && made >= 0 && made < FDS)
		memmove(fds[made], fd >= 0 && fd < FDS ? fds[fd] : "", fd >= 0 && fd < FDS ? NAME : 1);
	return made;
}

#define ARGUMENT(command, argument)       \
	va_list list;                     \
	va_start(list, command);          \
	void *argument = va_arg(list, void *); \
	va_end(list);

int fcntl(int fd, int command, ...) { ARGUMENT(command, argument) return duplicate(fd, command, argument); }
int fcntl64(int fd, int command, ...) { ARGUMENT(command, argument) return duplicate(fd, command, argument); }

/* How many bytes of a call of `length` are to be moved, if it was not struck by an errno. */
static size_t moved(enum kind kind, int fd, size_t length, int *struck)
{
	const char *path = open_path(fd);
	*struck = path && length > 0 ? strike(kind, path) : NONE;
	if (*struck > 0)
		errno = *struck;
	if (*struck == KILL && kind != WRITE)
		die();
	return *struck < 0 && length > 1 ? length / 2 : length;
}

/* A process that is to die in a write dies when half of it is done. */
#define MOVE(kind, call)                                            \
	int struck;                                                 \
	size_t part = moved(kind, fd, length, &struck);             \
	if (struck > 0)                                             \
		return -1;                                          \
	ssize_t done = call;                                        \
	if (kind == WRITE)                                          \
		note_call("write", open_path(fd), NULL);            \
	if (struck == KILL)                                         \
		die();                                              \
	return done;

ssize_t read(int fd, void *to, size_t length) { MOVE(READ, syscall(SYS_read, fd, to, part)) }
ssize_t pread(int fd, void *to, size_t length, off_t from) { MOVE(READ, syscall(SYS_pread64, fd, to, part, from)) }
ssize_t pread64(int fd, void *to, size_t length, off64_t from) { MOVE(READ, syscall(SYS_pread64, fd, to, part, from)) }
ssize_t write(int fd, const void *from, size_t length) { MOVE(WRITE, syscall(SYS_write, fd, from, part)) }
ssize_t pwrite(int fd, const void *from, size_t length, off_t to) { MOVE(WRITE, syscall(SYS_pwrite64, fd, from, part, to)) }
ssize_t pwrite64(int fd, const void *from, size_t length, off64_t to) { MOVE(WRITE, syscall(SYS_pwrite64, fd, from, part, to)) }

static size_t whole(const struct iovec *parts, int count)
{
	size_t length = 0;
	for (int i = 0; i < count; i++)
		length += parts[i].iov_len;
	return length;
}

/* A vector that is to be moved in part is moved up to the middle of its first part that is not empty. */
static ssize_t vector(long number, int fd, const struct iovec *parts, int count, size_t length, size_t part, off64_t offset)
{
	if (part == length)
		return syscall(number, fd, parts, count, offset, 0L);
	int i = 0;
	while (parts[i].iov_len == 0)
		i++;
	struct iovec one = {parts[i].iov_base, (parts[i].iov_len + 1) / 2};
	return syscall(number, fd, &one, 1, offset, 0L);
}

#define VECTOR(kind, number, offset)                                                \
	size_t length = whole(parts, count);                                        \
	MOVE(kind, vector(number, fd, parts, count, length, part, offset))

ssize_t readv(int fd, const struct iovec *parts, int count) { VECTOR(READ, SYS_readv, 0) }
ssize_t writev(int fd, const struct iovec *parts, int count) { VECTOR(WRITE, SYS_writev, 0) }
ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at_) { VECTOR(READ, SYS_preadv, at_) }
ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t at_) { VECTOR(READ, SYS_preadv, at_) }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at_) { VECTOR(WRITE, SYS_pwritev, at_) }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at_) { VECTOR(WRITE, SYS_pwritev, at_) }

#define ON_FILE(kind, call)                                  \
	const char *path = open_path(fd);                    \
	if (path && fails(kind, path))                       \
		return -1;                                   \
	if (kind == TRUNCATE || kind == COPY)                \
		note_call("write", path, NULL);              \
	if (kind == SYNC)                                    \
		note_call("sync", path, NULL);               \
	return call;

int fsync(int fd) { ON_FILE(SYNC, syscall(SYS_fsync, fd)) }
int fdatasync(int fd) { ON_FILE(SYNC, syscall(SYS_fdatasync, fd)) }
int ftruncate(int fd, off_t size) { ON_FILE(TRUNCATE, syscall(SYS_ftruncate, fd, size)) }
int ftruncate64(int fd, off64_t size) { ON_FILE(TRUNCATE, syscall(SYS_ftruncate, fd, size)) }
int fallocate(int fd, int mode, off_t from, off_t size) { ON_FILE(RESERVE, syscall(SYS_fallocate, fd, mode, from, size)) }
int fallocate64(int fd, int mode, off64_t from, off64_t size) { ON_FILE(RESERVE, syscall(SYS_fallocate, fd, mode, from, size)) }
off_t lseek(int fd, off_t to, int from) { ON_FILE(SEEK, syscall(SYS_lseek, fd, to, from)) }
off64_t lseek64(int fd, off64_t to, int from) { ON_FILE(SEEK, syscall(SYS_lseek, fd, to, from)) }
int flock(int fd, int how) { ON_FILE(LOCK, syscall(SYS_flock, fd, how)) }

ssize_t copy_file_range(int from, off64_t *a, int fd, off64_t *b, size_t length, unsigned flags)
{
	ON_FILE(COPY, syscall(SYS_copy_file_range, from, a, fd, b, length, flags))
}

ssize_t sendfile(int fd, int from, off_t *a, size_t length) { ON_FILE(COPY, syscall(SYS_sendfile, fd, from, a, length)) }
ssize_t sendfile64(int fd, int from, off64_t *a, size_t length) { ON_FILE(COPY, syscall(SYS_sendfile, fd, from, a, length)) }

/* ---- names */

#define ON_NAME(kind, dir, name, call)                       \
	const char *path = meant(dir, name);                 \
	return path && fails(kind, path) ? -1 : (call);

/* For calls that give a file a name: `word` is that of the trace. */
#define ON_NEW_NAME(kind, word, a, dir, b, call)             \
	const char *path = meant(dir, b);                    \
	if (path && fails(kind, path))                       \
		return -1;                                   \
	note_call(word, path ? a : NULL, path);              \
	return call;

int rename(const char *a, const char *b) { ON_NEW_NAME(RENAME, "rename", a, AT_FDCWD, b, syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)) }
int renameat(int d, const char *a, int e, const char *b) { ON_NEW_NAME(RENAME, "rename", a, e, b, syscall(SYS_renameat2, d, a, e, b, 0)) }
int renameat2(int d, const char *a, int e, const char *b, unsigned f) { ON_NEW_NAME(RENAME, "rename", a, e, b, syscall(SYS_renameat2, d, a, e, b, f)) }
int link(const char *a, const char *b) { ON_NEW_NAME(LINK, "link", a, AT_FDCWD, b, syscall(SYS_linkat, AT_FDCWD, a, AT_FDCWD, b, 0)) }
int linkat(int d, const char *a, int e, const char *b, int f) { ON_NEW_NAME(LINK, "link", a, e, b, syscall(SYS_linkat, d, a, e, b, f)) }
int symlink(const char *a, const char *b) { ON_NAME(LINK, AT_FDCWD, b, syscall(SYS_symlinkat, a, AT_FDCWD, b)) }
int unlink(const char *a) { ON_NAME(UNLINK, AT_FDCWD, a, syscall(SYS_unlinkat, AT_FDCWD, a, 0)) }
int rmdir(const char *a) { ON_NAME(UNLINK, AT_FDCWD, a, syscall(SYS_unlinkat, AT_FDCWD, a, AT_REMOVEDIR)) }
int unlinkat(int d, const char *a, int f) { ON_NAME(UNLINK, d, a, syscall(SYS_unlinkat, d, a, f)) }
int mkdir(const char *a, mode_t m) { ON_NAME(MKDIR, AT_FDCWD, a, syscall(SYS_mkdirat, AT_FDCWD, a, m)) }
int mkdirat(int d, const char *a, mode_t m) { ON_NAME(MKDIR, d, a, syscall(SYS_mkdirat, d, a, m)) }
int statx(int d, const char *a, int f, unsigned m, struct statx *to) { ON_NAME(STAT, d, a, syscall(SYS_statx, d, a, f, m, to)) }

int stat(const char *a, struct stat *to)
{
	REAL(int, stat, const char *, struct stat *);
	ON_NAME(STAT, AT_FDCWD, a, real(a, to))
}

int stat64(const char *a, struct stat64 *to)
{
	REAL(int, stat64, const char *, struct stat64 *);
	ON_NAME(STAT, AT_FDCWD, a, real(a, to))
}

int lstat64(const char *a, struct stat64 *to)
{
	REAL(int, lstat64, const char *, struct stat64 *);
	ON_NAME(STAT, AT_FDCWD, a, real(a, to))
}

int fstat64(int fd, struct stat64 *to)
{
	REAL(int, fstat64, int, struct stat64 *);
	ON_FILE(STAT, real(fd, to))
}

DIR *opendir(const char *name)
{
	REAL(DIR *, opendir, const char *);
	const char *path = meant(AT_FDCWD, name);
	if (path && fails(LIST, path))
		return NULL;
	DIR *dir = real(name);
	if (dir && path)
		note_open(dirfd(dir), path);
	return dir;
}

int closedir(DIR *dir)
{
	REAL(int, closedir, DIR *);
	note_open(dirfd(dir), NULL);
	return real(dir);
}

struct dirent64 *readdir64(DIR *dir)
{
	REAL(struct dirent64 *, readdir64, DIR *);
	const char *path = open_path(dirfd(dir));
	return path && fails(LIST, path) ? NULL : real(dir);
}

/* ---- stdio: its own reads and writes do not pass here, so a file that is meant is one whose functions are ours. */

static ssize_t cookie_read(void *fd, char *to, size_t length) { return read((int)(intptr_t)fd, to, length); }

/* As stdio does: what is left of a write in part is written in turn, and any error ends it. */
static ssize_t cookie_write(void *fd, const char *from, size_t length)
{
	size_t done = 0;
	while (done < length) {
		ssize_t part = write((int)(intptr_t)fd, from + done, length - done);
		if (part < 0)
			break;
		done += part;
	}
	return done;
}

static int cookie_seek(void *fd, off64_t *to, int from)
{
	off64_t now = lseek64((int)(intptr_t)fd, *to, from);
	if (now < 0)
		return -1;
	*to = now;
	return 0;
}

static int cookie_close(void *fd) { return close((int)(intptr_t)fd); }

static FILE *open_stream(const char *name, const char *mode, FILE *(*real)(const char *, const char *))
{
	if (meant(AT_FDCWD, name) == NULL)
		return real(name, mode);
	int plus = strchr(mode, '+') != NULL;
	int flags = mode[0] == 'r' ? (plus ? O_RDWR : O_RDONLY) : (plus ? O_RDWR : O_WRONLY) | O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
	int fd = open_at(AT_FDCWD, name, flags | O_CLOEXEC, 0666);
	if (fd < 0)
		return NULL;
	cookie_io_functions_t ours = {cookie_read, cookie_write, cookie_seek, cookie_close};
	return fopencookie((void *)(intptr_t)fd, mode, ours);
}

FILE *fopen(const char *name, const char *mode)
{
	REAL(FILE *, fopen, const char *, const char *);
	return open_stream(name, mode, real);
}

FILE *fopen64(const char *name, const char *mode)
{
	REAL(FILE *, fopen64, const char *, const char *);
	return open_stream(name, mode, real);
}

/* ---- memory, threads, random bytes */

void *mmap(void *where, size_t length, int protection, int flags, int fd, off_t from)
{
	return fails(MAP, open_path(fd)) ? MAP_FAILED : (void *)syscall(SYS_mmap, where, length, protection, flags, fd, from);
}

void *mmap64(void *where, size_t length, int protection, int flags, int fd, off64_t from)
{
	return mmap(where, length, protection, flags, fd, from);
}

/* The C library's own names, which need no search and hence no memory. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

/* Whether an allocation fails; it is asked by the functions that the program calls themselves. */
#define NO_MEMORY (is_program(__builtin_return_address(0)) && fails(ALLOC, NULL))

static int is_program(void *caller) { return (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end; }

void *malloc(size_t size) { return NO_MEMORY ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return NO_MEMORY ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return NO_MEMORY ? NULL : __libc_realloc(old, size); }
void *memalign(size_t to, size_t size) { return NO_MEMORY ? NULL : __libc_memalign(to, size); }
void *aligned_alloc(size_t to, size_t size) { return NO_MEMORY ? NULL : __libc_memalign(to, size); }

int posix_memalign(void **made, size_t to, size_t size)
{
	if (NO_MEMORY)
		return ENOMEM;
	*made = __libc_memalign(to, size);
	return *made || size == 0 ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	return fails(THREAD, NULL) ? EAGAIN : real(thread, attributes, start, argument);
}

ssize_t getrandom(void *to, size_t length, unsigned flags)
{
	return fails(RANDOM, NULL) ? -1 : syscall(SYS_getrandom, to, length, flags);
}

/* The asynchronous queues of the kernel are reached past the C library; without them the program reads by pread, which is ours. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (real == NULL)
		real = dlsym(RTLD_NEXT, "syscall");
	if (armed && (number == SYS_io_uring_setup || number == SYS_io_setup)) {
		errno = ENOSYS;
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
