/*
 * live.c: marks of the program in the call log, and how many objects are live at a mark and at the end.
 *
 * In: marks, the end of the process. Out: lines in the logs; the live objects only if the environment asks for them.
 */
#include "calls/calls.h"

#include <stdio.h>

static void print_live(const char *what)
{
	static const struct { enum object_type type; const char *name; } kinds[] = {
		{OBJECT_MODULE, "modules"}, {OBJECT_LIBRARY, "libraries"}, {OBJECT_STREAM, "streams"},
		{OBJECT_EVENT, "events"},   {OBJECT_GRAPH, "graphs"},      {OBJECT_EXEC, "execs"},
	};
	char text[256];
	size_t len = (size_t)snprintf(text, sizeof(text), "%s: allocations=%zu", what, allocation_count());
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s=%zu", kinds[i].name, object_count(kinds[i].type));
	size_t handles, ranges;
	vmm_leaks(&handles, &ranges);
	snprintf(text + len, sizeof(text) - len, " physical=%zu reserved=%zu", handles, ranges);
	error_log("%s", text);
}

__attribute__((visibility("default"))) void calllog_mark(const char *text)
{
	text = text ? text : "";
	driver_lock();
	call_log_mark(text);
	if (config_get()->leaks) {
		char what[256];
		snprintf(what, sizeof(what), "live at %.*s", 200, text);
		print_live(what);
	}
	driver_unlock();
}

__attribute__((destructor)) static void at_exit(void)
{
	if (config_get()->leaks)
		print_live("leaks");
}
