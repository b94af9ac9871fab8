/*
 * fault.c: one call that fails on demand, and functions that always fail.
 *
 * In: SIMGPU_FAIL=<function>:<nth>:<result>: function is the exact symbol, nth counts its calls by the first thread
 * that entered the driver (from 1: other threads would make the count a race), and result is a name such as
 * CUDA_ERROR_OUT_OF_MEMORY; SIMGPU_FAIL_ONCE, a file that is created when the call fails. If the file exists already,
 * no call fails: a process that is started again gets past the fault. SIMGPU_LACKS=<function>,<function>...: each of
 * their calls returns CUDA_ERROR_NOT_SUPPORTED, as on devices whose hypervisor does not pass a feature on, whatever the
 * device's attributes say. Out: the result in place of the call's own; the
 * call has no effect. A result after which a real context is lost stays with the current context. Fails: a malformed
 * value is reported on standard error and ignored.
 */
#include "core/core.h"

#include "core/results_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool read, armed;
	const char *lacks; /* functions, separated by commas; NULL: none */
	char function[128];
	unsigned long left; /* calls up to the one that fails */
	CUresult result;
} fault;

static CUresult result_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(result_rows); i++)
		if (strcmp(result_rows[i].name, name) == 0)
			return (CUresult)result_rows[i].number;
	return CUDA_SUCCESS;
}

static void read_fault(void)
{
	fault.read = true;
	const char *text = getenv("SIMGPU_FAIL");
	fault.lacks = getenv("SIMGPU_LACKS");
	if (!text || !*text)
		return;
	char name[128];
	if (sscanf(text, "%127[^:]:%lu:%127s", fault.function, &fault.left, name) == 3)
		fault.result = result_of(name);
	fault.armed = fault.result != CUDA_SUCCESS && fault.left > 0;
	if (!fault.armed)
		fprintf(stderr, "simgpu: SIMGPU_FAIL=%s is not function:nth:result: nothing will fail\n", text);
}

/* Takes the mark that a process before this one may have left. */
static bool first_time(void)
{
	const char *path = getenv("SIMGPU_FAIL_ONCE");
	if (!path || !*path)
		return true;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 && errno != EEXIST)
		fprintf(stderr, "simgpu: open %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool loses_context(CUresult r)
{
	switch ((int)r) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_LAUNCH_FAILED:
		return true;
	}
	return false;
}

static bool lacked(const char *name)
{
	size_t len = strlen(name);
	for (const char *at = fault.lacks; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
			return true;
	}
	return false;
}

CUresult fault_take(const char *name)
{
	if (!fault.read)
		read_fault();
	if (fault.lacks && lacked(name))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!fault.armed || thread_number() != 0 || strcmp(name, fault.function) != 0 || --fault.left)
		return CUDA_SUCCESS;
	fault.armed = false;
	if (!first_time())
		return CUDA_SUCCESS;
	error_log("%s: fails with %s, as SIMGPU_FAIL asks", name, result_name(fault.result));
	struct context *ctx = context_current();
	if (ctx && loses_context(fault.result))
		ctx->sticky = fault.result;
	return fault.result;
}
