/*
 * maps.h: every allocation of the process, by index and by address.
 *
 * In: the calls that the memory hooks saw. Out: the index of an allocation (the i of an indirect index pointer), records in the
 * trace, and the functions medusa_alloc_* and medusa_sequence. All functions here need the lock of core.h held.
 */
#ifndef MEDUSA_MAPS_H
#define MEDUSA_MAPS_H

#include "core.h"
#include "driver.h"

struct alloc {
	uint64_t addr, size;
	CUcontext ctx;
	uint32_t id; /* index; trigger scopes count separately */
	uint32_t thread, phase;
	uint32_t reopened; /* of another process's memory: closes that do not end it */
	enum alloc_kind kind;
	bool live, trigger, watched;
};

/* trigger: it is not counted, so no graph of an artifact can point there. */
void maps_add(enum alloc_kind kind, uint64_t addr, uint64_t size, uint64_t flags, bool trigger, CUcontext ctx, const char *stack);
/* The live allocation that begins at addr, or NULL. Valid until the next maps_add. */
struct alloc *maps_at(uint64_t addr);
/* Notes a free that is about to be made. If the driver then refuses it, pass the result to maps_unfree. */
uint64_t maps_free(struct alloc *a);
void maps_unfree(uint64_t freed);
/* Notes that a mapping is about to be unmapped. One that is watched is suspended until a mapping of the same size is made at its address. */
void maps_unmap(struct alloc *a);
/* Notes that reserved addresses are about to be given back. Mappings that were suspended there are gone. */
void maps_unreserve(uint64_t addr, uint64_t size);
/* Frees all allocations of ctx. */
void maps_free_context(CUcontext ctx);

/* The n-th allocation outside trigger scopes, or NULL. */
struct alloc *maps_nth(size_t n);

/* The number of phases marked so far, and that number when the capture phase began (0 before that). */
void maps_phase(const char *name);
uint32_t maps_capture_phase(void);
uint32_t maps_phases(void);

#endif
