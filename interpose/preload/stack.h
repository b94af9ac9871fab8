/*
 * stack.h: the callers of a function, as text that is valid in another process.
 *
 * In: the calling thread's stack. Out: the innermost frames outside this library as "file+0xoffset", separated by blanks.
 * Fails: frames without unwind information (those of Go or of a just-in-time compiler) end the list.
 */
#ifndef MEDUSA_STACK_H
#define MEDUSA_STACK_H

#include <stddef.h>

/* The first call may load the unwinder, so call it without the lock of core.h. */
void stack_text(char *out, size_t cap);

#endif
