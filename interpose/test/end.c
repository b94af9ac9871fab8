/*
 * end.c HOW: allocates twice and then ends. HOW is one of: return, exit, _exit, kill (SIGKILL after a phase is in the file),
 * kill-early (SIGKILL before any phase, once the trace names the process),
 * identity (two factors, then a phase), ready, fork (a child uses the parent's memory, then both return), fork-first (a child
 * makes all calls), twice (a second process with the same trace).
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"
#include "medusa.h"

static void phase(const char *name)
{
	void (*mark)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "medusa_mark_phase");
	if (mark)
		mark(name);
}

/* Whether the trace has the text. */
static bool written(const char *text)
{
	char data[1 << 16];
	const char *path = getenv(MEDUSA_ENV_TRACE);
	FILE *f = path ? fopen(path, "r") : NULL;
	size_t n = f ? fread(data, 1, sizeof data, f) : 0;
	if (f)
		fclose(f);
	return memmem(data, n, text, strlen(text)) != NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	CUcontext ctx;
	CUdeviceptr a, b;
	int status = 0;
	if (strcmp(how, "fork-first") == 0) {
		pid_t child;
		dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"); /* this makes the interposer read its mode */
		child = fork();
		if (child) {
			waitpid(child, &status, 0);
			return WEXITSTATUS(status);
		}
	}
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		return 2;
	if (strcmp(how, "kill-early") == 0) {
		cuMemAlloc(&a, 100);
		for (int i = 0; i < 500 && !written("kill-early"); i++)
			usleep(10000);
		kill(getpid(), SIGKILL);
	}
	if (strcmp(how, "return") != 0)
		phase("warmup");
	if (cuMemAlloc(&a, 100) || cuMemAlloc(&b, 200))
		return 3;
	if (strcmp(how, "exit") == 0)
		exit(7);
	if (strcmp(how, "_exit") == 0)
		_exit(7);
	if (strcmp(how, "kill") == 0) {
		phase("capture");
		for (int i = 0; i < 1000 && !written("capture"); i++)
			usleep(10000);
		kill(getpid(), SIGKILL);
	}
	if (strcmp(how, "identity") == 0) {
		void (*factor)(const char *, const char *) = (void (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "medusa_mark_identity");
		if (factor) {
			factor("engine.name", "end");
			factor("engine.version", "1");
		}
		phase("structure");
		puts("still here");
		return 0;
	}
	if (strcmp(how, "ready") == 0) {
		cuMemFree(a);
		phase("ready");
		puts("still here");
		return cuMemAlloc(&a, 300) != CUDA_SUCCESS;
	}
	if (strcmp(how, "fork") == 0) {
		pid_t child = fork();
		if (child == 0) {
			CUdeviceptr c;
			return cuMemAlloc(&c, 300) != CUDA_SUCCESS;
		}
		waitpid(child, &status, 0);
	}
	if (strcmp(how, "twice") == 0) {
		pid_t child = fork();
		if (child == 0) {
			execl(argv[0], argv[0], "exit", (char *)NULL);
			_exit(9);
		}
		waitpid(child, &status, 0);
		return WEXITSTATUS(status) != 7;
	}
	return WEXITSTATUS(status);
}
