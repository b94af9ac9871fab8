/*
 * stack.h: who called, as text that means the same in another process.
 *
 * In: the calling thread's stack. Out: the innermost frames outside this library as "file+0xoffset", separated by blanks.
 * Fails: frames without unwind information (Go's, a just-in-time compiler's) end the list.
 */
#ifndef MEDUSA_STACK_H
#define MEDUSA_STACK_H

#include <stddef.h>

/* May load the unwinder at its first call: without the lock of core.h held. */
void stack_text(char *out, size_t cap);

#endif
