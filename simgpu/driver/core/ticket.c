/*
 * ticket.c: handles of objects for other processes: whose object it is, and whether it still lives.
 *
 * In: handles of 64 bytes that a process wrote and another one reads. Out: a ticket, which is one page that both processes map; its
 * first word says that the object is gone. Fails: INVALID_HANDLE for bytes that are no handle, for an exporter that has ended and for an
 * object that is gone; MAP_FAILED if the host denies a process the files of another one.
 *
 * The page is a memory file of the exporter, which others open through /proc. So the file disappears when the exporter dies. Its name
 * holds a random number: the number of a process or of a file that is used again leads to no other object.
 */
#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define HOST_PAGE 4096
#define MAGIC UINT64_C(0x3143504975706d73)

static void ticket_name(char *name, size_t size, uint64_t number)
{
	snprintf(name, size, "simgpu-ticket-%016llx", (unsigned long long)number);
}

struct ticket *ticket_new(void)
{
	struct ticket *t = xalloc(sizeof(*t));
	char name[64];
	if (getrandom(&t->number, sizeof(t->number), 0) != sizeof(t->number))
		t->number = random_of((uint64_t)getpid() << 32 ^ now_us());
	ticket_name(name, sizeof(name), t->number);
	t->file = memfd_create(name, MFD_CLOEXEC);
	void *p = t->file < 0 || ftruncate(t->file, HOST_PAGE) ? MAP_FAILED
	                                                       : mmap(NULL, HOST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, t->file, 0);
	if (p == MAP_FAILED) {
		if (t->file >= 0)
			close(t->file);
		free(t);
		return NULL;
	}
	t->gone = p;
	return t;
}

void ticket_end(struct ticket *t)
{
	if (!t)
		return;
	if (t->file >= 0) { /* the exporter's */
		*t->gone = 1;
		close(t->file);
	}
	munmap((void *)t->gone, HOST_PAGE);
	free(t);
}

struct handle ticket_handle(const struct ticket *t, enum handle_kind kind)
{
	return (struct handle){.magic = MAGIC, .kind = kind, .process = getpid(), .ticket = t->file, .number = t->number};
}

int handle_file(const struct handle *h, int file, const char *name)
{
	char path[64], target[128], want[128];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->process, file);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		if (errno == EACCES || errno == EPERM)
			error_log("open memory of process %d: the host denies access to %s", h->process, path);
		return errno == EACCES || errno == EPERM ? -CUDA_ERROR_MAP_FAILED : -CUDA_ERROR_INVALID_HANDLE;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);
	if (strcmp(target, want) == 0)
		return fd;
	close(fd);
	return -CUDA_ERROR_INVALID_HANDLE;
}

CUresult handle_open(const struct handle *h, enum handle_kind kind, struct ticket **out)
{
	char name[64];
	if (h->magic != MAGIC || h->kind != (int32_t)kind)
		return CUDA_ERROR_INVALID_HANDLE;
	if (h->process == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	ticket_name(name, sizeof(name), h->number);
	int fd = handle_file(h, h->ticket, name);
	if (fd < 0)
		return (CUresult)-fd;
	void *p = mmap(NULL, HOST_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	struct ticket *t = xalloc(sizeof(*t));
	*t = (struct ticket){.file = -1, .number = h->number, .gone = p};
	if (*t->gone) {
		ticket_end(t);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*out = t;
	return CUDA_SUCCESS;
}
