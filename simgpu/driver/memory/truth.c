/*
 * truth.c: every allocation and free in order, in the ground truth.
 */
#include "memory/memory.h"

static const char *kind_name(enum alloc_kind kind)
{
	switch (kind) {
	case ALLOC_DEVICE: return "device";
	case ALLOC_MANAGED: return "managed";
	case ALLOC_PINNED: return "pinned";
	case ALLOC_REGISTERED: return "registered";
	case ALLOC_ASYNC: return "async";
	case ALLOC_POOL: return "pool";
	case ALLOC_VMM: return "vmm";
	case ALLOC_PITCH: return "pitch";
	case ALLOC_IPC: return "ipc";
	case ALLOC_GLOBAL: return "global";
	}
	return "unknown";
}

void truth_alloc(const struct allocation *a)
{
	if (!truth_wanted())
		return;
	struct truth_line l = truth_start("alloc");
	truth_append(&l, "\t%lld\t%s\t0x%llx\t%llu", (long long)a->index, kind_name(a->kind), (unsigned long long)a->base,
	       (unsigned long long)a->size);
	truth_end(&l);
}

void truth_free(const struct allocation *a)
{
	if (!truth_wanted())
		return;
	struct truth_line l = truth_start("free");
	truth_append(&l, "\t%lld\t0x%llx", (long long)a->index, (unsigned long long)a->base);
	truth_end(&l);
}
