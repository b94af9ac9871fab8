/*
 * runtime CUDART [CUBLAS CUBLASLT]: the answers of a real CUDA runtime and real libraries on a machine without a GPU.
 *
 * In: their files. Out: a line a call, with its result and, of the runtime, the text of its error. Fails: exit code 2 if a file
 * does not load or lacks a function.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library(const char *path)
{
	void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!h) {
		fprintf(stderr, "runtime: %s\n", dlerror());
		exit(2);
	}
	return h;
}

static void *function(void *h, const char *name)
{
	void *p = dlsym(h, name);
	if (!p) {
		fprintf(stderr, "runtime: %s\n", dlerror());
		exit(2);
	}
	return p;
}

static void calls(void *cudart)
{
	const char *(*text)(int) = (const char *(*)(int))function(cudart, "cudaGetErrorString");
	int count = 0, rc;
	void *p = NULL;
	rc = ((int (*)(int *))function(cudart, "cudaGetDeviceCount"))(&count);
	printf("cudaGetDeviceCount %d %s\n", rc, text(rc));
	rc = ((int (*)(void **, size_t))function(cudart, "cudaMalloc"))(&p, 4096);
	printf("cudaMalloc %d %s\n", rc, text(rc));
	rc = ((int (*)(void **))function(cudart, "cudaStreamCreate"))(&p);
	printf("cudaStreamCreate %d %s\n", rc, text(rc));
	rc = ((int (*)(void *, void *, int, size_t, int))function(cudart, "cudaMemcpy"))(&count, &p, 4, 4, 1);
	printf("cudaMemcpy %d %s\n", rc, text(rc));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	void *handle = NULL, *cudart;
	int status = 0;
	pid_t child;
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "runtime CUDART [CUBLAS CUBLASLT]\n");
		return 2;
	}
	cudart = library(argv[1]);
	calls(cudart);
	child = fork();
	if (child == 0) {
		calls(cudart);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = -1;
	printf("child %d\n", status);
	if (argc == 4) {
		void *lt = library(argv[3]), *blas = library(argv[2]);
		printf("cublasLtCreate %d\n", ((int (*)(void **))function(lt, "cublasLtCreate"))(&handle));
		printf("cublasCreate_v2 %d\n", ((int (*)(void **))function(blas, "cublasCreate_v2"))(&handle));
	}
	return 0;
}
