/*
 * objects.c: which handles are alive, by type; and the allocation helpers of the driver.
 *
 * In: handles as addresses. Out: yes or no, and counts. Fails: never; running out of host memory ends the process.
 * A hash set, so that a handle made of garbage is told from a live one without following it.
 */
#include "core/core.h"

#include <stdlib.h>
#include <string.h>

struct slot { const void *handle; enum object_type type; };

static struct slot *slots;
static size_t slot_cap, slot_used; /* used: live and removed */
static size_t counts[OBJECT_TYPES];
static const char removed_mark;
#define REMOVED ((const void *)&removed_mark)

static size_t hash(const void *handle)
{
	uint64_t x = (uintptr_t)handle;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
	return (size_t)(x ^ (x >> 32));
}

static struct slot *find(const void *handle)
{
	if (!handle || handle == REMOVED)
		return NULL;
	for (size_t i = 0; i < slot_cap; i++) {
		struct slot *s = &slots[(hash(handle) + i) & (slot_cap - 1)];
		if (s->handle == handle)
			return s;
		if (!s->handle)
			return NULL;
	}
	return NULL;
}

static void put(const void *handle, enum object_type type)
{
	size_t i = hash(handle);
	while (slots[i & (slot_cap - 1)].handle && slots[i & (slot_cap - 1)].handle != REMOVED)
		i++;
	slot_used += !slots[i & (slot_cap - 1)].handle;
	slots[i & (slot_cap - 1)] = (struct slot){handle, type};
}

void object_add(const void *handle, enum object_type type)
{
	if (2 * (slot_used + 1) > slot_cap) {
		struct slot *old = slots;
		size_t n = slot_cap, live = 0;
		for (int t = 0; t < OBJECT_TYPES; t++)
			live += counts[t];
		for (slot_cap = 1024; slot_cap < 4 * (live + 1);)
			slot_cap *= 2;
		slots = xalloc(slot_cap * sizeof(*slots));
		slot_used = 0;
		for (size_t i = 0; i < n; i++)
			if (old[i].handle && old[i].handle != REMOVED)
				put(old[i].handle, old[i].type);
		free(old);
	}
	put(handle, type);
	counts[type]++;
}

void object_remove(const void *handle)
{
	struct slot *s = find(handle);
	if (!s)
		return;
	counts[s->type]--;
	s->handle = REMOVED;
}

bool object_live(const void *handle, enum object_type type)
{
	struct slot *s = find(handle);
	return s && s->type == type;
}

size_t object_count(enum object_type type)
{
	return counts[type];
}

void object_each(enum object_type type, void (*visit)(void *, void *), void *arg)
{
	for (size_t i = 0; i < slot_cap; i++)
		if (slots[i].handle && slots[i].handle != REMOVED && slots[i].type == type)
			visit((void *)(uintptr_t)slots[i].handle, arg);
}

static void *must(void *p)
{
	if (!p) {
		fputs("simgpu: out of host memory\n", stderr);
		abort();
	}
	return p;
}

void *xalloc(size_t size)
{
	return must(calloc(1, size ? size : 1));
}

char *xdup(const char *text, size_t len)
{
	char *p = must(malloc(len + 1));
	memcpy(p, text, len);
	p[len] = 0;
	return p;
}

void *grow(void *array, size_t *cap, size_t n, size_t item)
{
	if (n <= *cap)
		return array;
	size_t want = *cap ? *cap : 4;
	while (want < n)
		want *= 2;
	array = must(realloc(array, want * item));
	memset((char *)array + *cap * item, 0, (want - *cap) * item);
	*cap = want;
	return array;
}
