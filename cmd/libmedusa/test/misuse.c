/*
 * misuse.c: calls libmedusa.so as its header forbids: each function without a session, with NULL, in a forked child, from a second
 * thread, and inside of another call. Each has to return MEDUSA_MISUSE, with a text, and before the alarm. Prints the names of the
 * functions, and a line for each call that did otherwise.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmedusa.h"
#include "medusa.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static uint64_t number;
static int64_t size;
static char byte;
static const char *text = "text";
static struct medusa_session_graph graph;
static struct medusa_collective call;

static int layer(void *arg) { return arg != NULL; }
static int make(void *arg, const struct medusa_collective *c, uint64_t stream) { return arg || !c || stream; }

/* Every function, with arguments that are right. */
enum { ALONE = 1, NOT_IN_CHECKS = 2 };
#define ROW(name, kind, ...) static int do_##name(void) { return medusa_session_##name(__VA_ARGS__); }
#define ROWS(R) \
	R(open, ALONE) \
	R(restoring, 0) \
	R(phase, 0, text) \
	R(identify, ALONE, &text, &text, 1) \
	R(weights, 0) \
	R(elastic, 0, 0, 0) \
	R(kv_bytes, 0, &number) \
	R(kv_room, 0, &number) \
	R(workspace, 0, &number) \
	R(triggers, 0, &size, 1) \
	R(trigger, ALONE, layer, NULL) \
	R(graphs, ALONE, &graph, 1) \
	R(tensor, 0, text, &number) \
	R(note, 0, text, &byte, 1) \
	R(kernels, 0, &byte, 1) \
	R(provide, NOT_IN_CHECKS, NULL, NULL, NULL) \
	R(collectives, NOT_IN_CHECKS, make, NULL) \
	R(connect, NOT_IN_CHECKS, layer, NULL) \
	R(alone, 0) \
	R(stand_in, 0, &call, 0) \
	R(refuse, NOT_IN_CHECKS, text) \
	R(usable, 0, 0, &number) \
	R(sleep, ALONE) \
	R(wake, ALONE, 0) \
	R(invalidate, 0, text) \
	R(ready, ALONE, NULL, NULL) \
	R(failed, 0, 0) \
	R(close, ALONE)
ROWS(ROW)

#define ENTRY(name, kind, ...) {#name, kind, do_##name},
static const struct row {
	const char *name;
	int kind;
	int (*make)(void);
} rows[] = {ROWS(ENTRY)};

static int check(const char *when, const char *name, int result, int want)
{
	if (result == want && (want >= 0 || medusa_session_error()[0]))
		return 0;
	printf("wrong: %s, %s: %d (%s), want %d\n", when, name, result, medusa_session_error(), want);
	fflush(stdout);
	return 1;
}

static int misused(const char *when, int but)
{
	int wrong = 0;
	for (size_t i = 0; i < LENGTH(rows); i++)
		if (!but || rows[i].kind & but)
			wrong += check(when, rows[i].name, rows[i].make(), MEDUSA_MISUSE);
	return wrong;
}

static void in_child(const char *when, pid_t child)
{
	int status = 0;
	if (child == 0) {
		alarm(10);
		_exit(misused(when, 0) != 0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		printf("wrong: %s: the child ended with status %#x\n", when, (unsigned)status);
}

static void forked(const char *when)
{
	fflush(stdout);
	in_child(when, fork());
	in_child(when, (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, NULL, NULL, NULL, NULL)); /* runs no handler of pthread_atfork */
}

static void without_arguments(void)
{
	const char *nothing = NULL;
#define NO(name, ...) check("an argument is NULL", #name, medusa_session_##name(__VA_ARGS__), MEDUSA_MISUSE)
	NO(phase, NULL);
	NO(identify, NULL, &text, 1);
	NO(identify, &text, NULL, 1);
	NO(identify, &nothing, &text, 1);
	NO(identify, &text, &nothing, 1);
	NO(identify, NULL, NULL, SIZE_MAX);
	NO(kv_bytes, NULL);
	NO(kv_room, NULL);
	NO(workspace, NULL);
	NO(triggers, NULL, 1);
	NO(trigger, NULL, NULL);
	NO(graphs, NULL, 1);
	NO(tensor, NULL, &number);
	NO(tensor, text, NULL);
	NO(note, NULL, &byte, 1);
	NO(note, text, NULL, 1);
	NO(kernels, NULL, 1);
	NO(collectives, NULL, NULL);
	NO(connect, NULL, NULL);
	NO(stand_in, NULL, 0);
	NO(refuse, NULL);
	NO(usable, 0, NULL);
	NO(invalidate, NULL);
	check("a large capacity", "triggers", medusa_session_triggers(&size, SIZE_MAX), 0);
	check("a large capacity", "kernels", medusa_session_kernels(&byte, SIZE_MAX), 0);
}

static void *second(void *when)
{
	misused(when, 0);
	return NULL;
}

static void beside(const char *when)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, second, (void *)when) || pthread_join(thread, NULL))
		printf("wrong: %s: no thread\n", when);
}

static int inside(void *arg)
{
	misused("in a layer", ALONE);
	check("in a layer", "restoring", medusa_session_restoring(), 0);
	check("in a layer", "provide", medusa_session_provide(NULL, NULL, NULL), 0);
	beside("beside a layer");
	forked("forked in a layer");
	return arg != NULL;
}

/* Threads that do not wait for each other: a call is made, or refused. */
static void *hammer(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		int rc = i % 2 ? medusa_session_note("none", NULL, 0) : medusa_session_restoring();
		if (rc != MEDUSA_MISUSE && rc != (i % 2 ? MEDUSA_FAILED : 0))
			return "wrong: two threads: another result\n";
		if (rc < 0 && !strstr(medusa_session_error(), rc == MEDUSA_MISUSE ? "another thread" : "no such note"))
			return "wrong: two threads: another's text\n";
	}
	return arg;
}

int main(void)
{
	pthread_t threads[4];
	void *wrong;
	alarm(60);
	for (size_t i = 0; i < LENGTH(rows); i++)
		printf("medusa_session_%s\n", rows[i].name);
	forked("forked before the session");
	for (size_t i = 1; i < LENGTH(rows); i++) /* all but open */
		check("no session", rows[i].name, rows[i].make(), MEDUSA_MISUSE);
	check("first", "open", medusa_session_open(), MEDUSA_NONE);
	check("second", "open", medusa_session_open(), MEDUSA_MISUSE);
	without_arguments();
	forked("forked");
	check("a layer", "trigger", medusa_session_trigger(inside, NULL), 0);
	for (size_t i = 0; i < LENGTH(threads); i++)
		pthread_create(&threads[i], NULL, hammer, "");
	for (size_t i = 0; i < LENGTH(threads); i++) {
		pthread_join(threads[i], &wrong);
		fputs(wrong, stdout);
	}
	check("last", "close", medusa_session_close(), 0);
	for (size_t i = 1; i < LENGTH(rows); i++)
		check("closed", rows[i].name, rows[i].make(), MEDUSA_MISUSE);
	return 0;
}
