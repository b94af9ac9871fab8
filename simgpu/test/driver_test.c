/*
 * driver_test.c: promises of the simulated driver alone, so that conformance.c cannot ask a real one for them: addresses
 * that move, work that stays undone, faults that name their place, logs.
 *
 * Usage: driver_test [test]. Without an argument each test runs in a process of its own, with the environment it names and
 * log files in a temporary directory. Exit status 0 if every test passed.
 */
#include "driver_test.h"

#include <sys/wait.h>

CUfunction add_kernel;

CUfunction load(const char *ptx, const char *name)
{
	CUmodule m;
	CUfunction f;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, name));
	return f;
}

static void start(void)
{
	CUcontext ctx;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	add_kernel = load(HEADER KERNEL("add", "add.f32"), "add");
}

CUresult launch(CUfunction f, CUstream s, CUdeviceptr buf, unsigned n, float v)
{
	void *params[] = {&buf, &n, &v};
	return cuLaunchKernel(f, (n + 31) / 32, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

CUstream new_stream(void)
{
	CUstream s;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

const char *line_with(const char *path, const char *a, const char *b)
{
	static char line[4096];
	FILE *f = fopen(path, "r");
	CHECK(f != NULL);
	bool found = false;
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, a) && strstr(line, b);
	fclose(f);
	return found ? line : NULL;
}

static const struct { const char *name; void (*run)(void); const char *env; } tests[] = {
	{"undone", undone, NULL},
	{"unordered", unordered, NULL},
	{"missing_edge", missing_edge, NULL},
	{"print_addresses", print_addresses, NULL},
	{"print_distances", print_distances, NULL},
	{"reuse", reuse, NULL},
	{"placement", placement, NULL},
	{"not_zeroed", not_zeroed, NULL},
	{"out_of_memory", out_of_memory, "SIMGPU_MEMORY=64M"},
	{"freed_memory", freed_memory, NULL},
	{"past_the_end", past_the_end, NULL},
	{"no_names", no_names, NULL},
	{"unsupported", unsupported, NULL},
	{"between_processes", between_processes, NULL},
	{"shared_device", shared_device, NULL},
	{"no_compute", no_compute, "SIMGPU_COMPUTE=off"},
	{"other_device", other_device, "SIMGPU_DEVICES=2"},
	{"multicast", multicast, "SIMGPU_DEVICES=2 SIMGPU_MULTICAST=1"},
	{"capability", capability, "SIMGPU_COMPUTE_CAPABILITY=8.6"},
	{"fat_binary", fat_binary, NULL},
	{"library_in_capture", library_in_capture, NULL},
	{"copies_take_time", copies_take_time, "SIMGPU_COPY_RATE=1M"},
	{"origins_refused", origins_refused, NULL},
	{"origins_idle", origins_idle, "SIMGPU_MACHINE_CODE=no-op"},
	{"code_refused", code_refused, NULL},
	{"code_runs_nothing", code_runs_nothing, "SIMGPU_MACHINE_CODE=no-op"},
	{"code_damaged", code_damaged, "SIMGPU_MACHINE_CODE=no-op"},
	{"code_sections_without_bytes", code_sections_without_bytes, "SIMGPU_MACHINE_CODE=no-op"},
	{"code_files_cut_off", code_files_cut_off, "SIMGPU_MACHINE_CODE=no-op"},
	{"code_damaged_block", code_damaged_block, "SIMGPU_MACHINE_CODE=no-op"},
	{"call_log", call_log, NULL},
	{"forks", forks, NULL},
	{"truth", truth, NULL},
	{"truth_of_long_names", truth_of_long_names, NULL},
	{"leave_things", leave_things, "SIMGPU_LEAKS=1"},
	{"fault_once", fault_once, "SIMGPU_FAIL=cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY"},
	{"fault_sticky", fault_sticky, "SIMGPU_FAIL=cuStreamSynchronize:1:CUDA_ERROR_ILLEGAL_ADDRESS"},
	{"host_function_waits", host_function_waits, NULL},
	{"threads", threads, NULL},
	{"large_graph", large_graph, NULL},
};

static char out[4096];

/* Runs a test of this program with its environment; its output is in out. */
static int run(const char *name, const char *env)
{
	int fd[2];
	if (pipe(fd))
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char copy[128];
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		snprintf(copy, sizeof(copy), "%s", env ? env : "");
		for (char *variable = strtok(copy, " "); variable; variable = strtok(NULL, " "))
			putenv(variable);
		execl("/proc/self/exe", "driver_test", name, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	size_t len = 0;
	ssize_t n;
	while (len < sizeof(out) - 1 && (n = read(fd[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = 0;
	close(fd[0]);
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int report(const char *name, bool passed)
{
	printf("%s %s\n%s", passed ? "ok  " : "FAIL", name, passed ? "" : out);
	return !passed;
}

/* Whether a test prints the same under two environments. */
static bool same(const char *name, const char *env, const char *other)
{
	static char first[sizeof(out)];
	run(name, env);
	memcpy(first, out, sizeof(first));
	run(name, other);
	return strcmp(first, out) == 0;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			if (strcmp(tests[i].name, argv[1]) == 0) {
				alarm(60); /* a test that hangs is a test that fails */
				start();
				tests[i].run();
				return 0;
			}
		return 127;
	}
	char dir[] = "/tmp/simgpu-test-XXXXXX", path[64], cmd[64];
	if (!mkdtemp(dir))
		return 1;
	static const char *const logs[] = {"SIMGPU_LOG", "SIMGPU_CALL_LOG", "SIMGPU_TRUTH"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, logs[i]);
		setenv(logs[i], path, 1);
	}
	int failed = 0;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		failed += report(tests[i].name, run(tests[i].name, tests[i].env) == 0);
	run("leave_things", "SIMGPU_LEAKS=1");
	leaks();
	run("print_addresses", NULL); /* it fails nowhere */
	failed += report("no errors of an earlier process", !line_with(getenv("SIMGPU_LOG"), "leaks", ""));
	snprintf(path, sizeof(path), "SIMGPU_CALL_LOG=%s/calls.%%p", dir);
	run("forks", path);
	snprintf(cmd, sizeof(cmd), "test $(ls %s/calls.[0-9]* | wc -l) = 2", dir);
	failed += report("each process has its own log", system(cmd) == 0);
	failed += report("addresses repeat with the seed", same("print_addresses", "SIMGPU_SEED=7", "SIMGPU_SEED=7"));
	failed += report("addresses differ without one", !same("print_addresses", NULL, NULL));
	failed += report("distances differ", !same("print_distances", "SIMGPU_SEED=7", "SIMGPU_SEED=8"));
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		failed++;
	printf("driver_test: %d failed\n", failed);
	return failed != 0;
}
