/*
 * ptx_refused_test.c: the texts of refused.txt: wrong ones are refused with their line and cause, right ones load.
 *
 * test-ptxas, which reads the same file, checks that NVIDIA's assembler decides the same.
 */
#include "ptx_test.h"

#include <stdlib.h>
#include <string.h>

struct texts { const char *kernel; uint32_t wrong, right; };

static uint32_t lines(const char *s)
{
	uint32_t n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

/* "wrong | body 8.0 sm_90 | name | 1: message" and the text below it */
static void try(struct texts *t, const char *head, const char *text)
{
	char verdict[16], kind[16], version[8] = "7.8", target[16] = "sm_80", name[128], where[32], cause[256] = "", err[512] = "", *whole;
	bool body, module;
	uint32_t line = 0;
	size_t cap = strlen(text) + strlen(t->kernel) + 256;
	struct ptx_module *m;
	int n = 0;

	if (sscanf(head, "%15s | %15s %n", verdict, kind, &n) != 2)
		CHECK(false, "no case: %s", head);
	if (head[n] != '|')
		sscanf(head + n, "%7s %15s", version, target);
	head = strchr(head + n, '|') + 2;
	CHECK(sscanf(head, "%127[^|\n]| %u: %255[^\n]", name, &line, cause) == (verdict[0] == 'w' ? 3 : 1), "%s", head);
	body = !strcmp(kind, "body");
	module = !strcmp(kind, "module");
	whole = malloc(cap);
	n = module ? 0 : snprintf(whole, cap, ".version %s\n.target %s\n.address_size 64\n%s", version, target, body ? t->kernel : "");
	whole[n] = 0;
	line += lines(whole);
	snprintf(whole + n, cap - (size_t)n, "%s%s", text, body ? "\tret;\n}\n" : "");
	m = ptx_parse(whole, strlen(whole), err, sizeof err);
	if (verdict[0] == 'w') {
		snprintf(where, sizeof where, "line %u: ", line);
		CHECK(!m, "%s is accepted", name);
		CHECK(m || (!strncmp(err, where, strlen(where)) && !strcmp(err + strlen(where), cause)), "%s: %s, not %s%s", name, err, where, cause);
		t->wrong++;
	} else {
		CHECK(m, "%s: %s", name, err);
		t->right++;
	}
	ptx_free(m);
	free(whole);
}

void test_refused(void)
{
	static const char mark[] = "\n==== ";
	struct texts t = { .kernel = "" };
	size_t len;
	char *file = read_sample("refused.txt", &len), *at = strstr(file, mark);

	while (at) {
		char *head = at + strlen(mark), *text = strchr(head, '\n') + 1, *next = strstr(text - 1, mark);

		if (next)
			next[1] = 0;
		text[-1] = 0;
		if (!strcmp(head, "kernel"))
			t.kernel = text;
		else
			try(&t, head, text);
		/* The mark's newline belongs to the text before it. */
		at = next;
	}
	CHECK(t.wrong >= 45 && t.right >= 10, "%u wrong texts, %u right ones", t.wrong, t.right);
	free(file);
}
