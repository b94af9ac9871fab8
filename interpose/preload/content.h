/*
 * content.h: saves the contents of capture-phase memory.
 *
 * In: the live allocations of the capture phase (all allocations if the process marks no phases) and the framework's blocks. Out:
 * content records. Fails: the driver does not answer any more; a fault record says so.
 */
#ifndef MEDUSA_CONTENT_H
#define MEDUSA_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

/* The framework's allocator handed out a block or took it back. Needs the lock held. */
void content_block(uint64_t addr, uint64_t size, bool live);
void content_blocks(void (*visit)(uint64_t addr, uint64_t size, bool live));
/* The driver takes back a range with its blocks. Needs the lock held. */
void content_forget(uint64_t addr, uint64_t size);
/* Waits for the device and writes the records. Takes the lock when it needs it. */
void content_record(void);

#endif
