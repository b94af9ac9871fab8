/*
 * libc.h: the C library's own dlsym and dlvsym, which this library exports too.
 *
 * In: a name. Out: the function, read from the dynamic symbol table of the C library. Fails: NULL if no loaded C library has it.
 */
#ifndef MEDUSA_LIBC_H
#define MEDUSA_LIBC_H

void *libc_symbol(const char *name);

#endif
