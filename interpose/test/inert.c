/*
 * inert.c: an ordinary process that inherits LD_PRELOAD and never calls the driver. It prints the effects of the interposer that
 * it can see; the output must be the same without the interposer. With an argument it starts itself once without one.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *self = dlopen(NULL, RTLD_NOW);
	const char *error;
	printf("default %d\n", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL);
	/* glibc's message names the object that was asked. If the interposer answers, that is libc. */
	error = dlerror();
	printf("error %s\n", error ? strstr(error, "undefined symbol") : "none");
	printf("self %d\n", dlsym(self, "cuInit") != NULL || dlsym(self, "cuMemAlloc_v2") != NULL);
	printf("cudnn %d\n", dlsym(RTLD_DEFAULT, "cudnnCreate") != NULL);
	printf("printf %d\n", dlsym(RTLD_DEFAULT, "printf") != NULL);
	printf("libcuda %d\n", dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL);
	fflush(stdout);
	if (argc > 1) {
		pid_t child = fork();
		int status = 1;
		if (child == 0) {
			execl(argv[0], argv[0], (char *)NULL);
			_exit(9);
		}
		waitpid(child, &status, 0);
		return WEXITSTATUS(status);
	}
	return 0;
}
