/*
 * query DRIVER NAMES: opens the driver and asks it for entry points, in every way that a process has.
 *
 * In: the driver's file; a file of names, one a line; the API versions below. Out: a line for each question,
 *     ENTRY NAME VERSION FLAGS RESULT STATUS FILE OFFSET
 * RESULT and STATUS are the driver's, STATUS -1 if the entry point has none. FILE and OFFSET are the place of the answer; "-" and 0 if there is none. ENTRY dlsym asks for the name alone.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*v1_fn)(const char *, void **, int, uint64_t);
typedef int (*v2_fn)(const char *, void **, int, uint64_t, int *);

/* Every version of CUDA that a program may have been built with, and one that no driver knows yet. */
static const int versions[] = {
	1000, 2000, 2010, 2020, 2030, 3000, 3010, 3020, 4000, 4010, 4020, 5000, 5050, 6000, 6050, 7000, 7050, 8000,
	9000, 9010, 9020, 10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080, 12000,
	12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 99000,
};
enum { FLAGS = 3 }; /* default, legacy stream, stream of the thread */

static void answer(const char *entry, const char *name, int version, int flags, int rc, int status, void *p)
{
	Dl_info info = {0};
	const char *file = "-";
	uintptr_t offset = 0;
	if (p && dladdr(p, &info) && info.dli_fname) {
		file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
		offset = (uintptr_t)p - (uintptr_t)info.dli_fbase;
	} else if (p) {
		file = "nowhere";
	}
	printf("%s %s %d %d %d %d %s %lu\n", entry, name, version, flags, rc, status, file, (unsigned long)offset);
}

static void ask(void *driver, const char *name)
{
	static const char *const entries[] = {"cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz"};
	v1_fn v1 = (v1_fn)dlsym(driver, "cuGetProcAddress");
	answer("dlsym", name, 0, 0, 0, 0, dlsym(driver, name));
	for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
		for (int flags = 0; flags < FLAGS; flags++) {
			for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
				v2_fn v2 = (v2_fn)dlsym(driver, entries[e]);
				void *p = NULL;
				int status = -1, rc;
				if (!v2)
					continue;
				rc = v2(name, &p, versions[v], (uint64_t)flags, &status);
				answer(entries[e], name, versions[v], flags, rc, status, p);
			}
			if (v1) {
				void *p = NULL;
				int rc = v1(name, &p, versions[v], (uint64_t)flags);
				answer("cuGetProcAddress", name, versions[v], flags, rc, -1, p);
			}
		}
	}
}

int main(int argc, char **argv)
{
	char name[256];
	void *driver = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	FILE *names = argc == 3 ? fopen(argv[2], "r") : NULL;
	if (!driver || !names) {
		fprintf(stderr, "query DRIVER NAMES: %s\n", driver ? "no names" : dlerror());
		return 2;
	}
	while (fgets(name, sizeof name, names)) {
		name[strcspn(name, "\n")] = 0;
		ask(driver, name);
	}
	return ferror(names) || fflush(stdout) ? 1 : 0;
}
