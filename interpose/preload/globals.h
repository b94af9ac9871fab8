/*
 * globals.h: module variables whose address the process asked for.
 *
 * In: the hooks of the calls that return such an address. Out: global records, and at `ready` the content of each variable,
 * because host code may have written it in a part of the start that a restore skips. Fails: the driver does not answer; a fault
 * record says so.
 */
#ifndef MEDUSA_GLOBALS_H
#define MEDUSA_GLOBALS_H

#include <stdint.h>

/* Forgets the variables of a module that is gone. Needs the lock held. */
void globals_forget_module(uint32_t module);
/* Records the contents of the variables. The device is idle. Takes the lock when it needs it. */
void globals_record(void);

#endif
