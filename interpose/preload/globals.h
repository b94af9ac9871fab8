/*
 * globals.h: module variables whose address the process asked for.
 *
 * In: the hooks of those questions. Out: global records, and at `ready` what each variable holds: host code may have
 * written it in the skipped part of a start. What can fail: the driver does not answer; a fault record says so.
 */
#ifndef MEDUSA_GLOBALS_H
#define MEDUSA_GLOBALS_H

#include <stdint.h>

/* The module's variables are gone. Needs the lock held. */
void globals_forget_module(uint32_t module);
/* Records what the variables hold. The device is idle. Takes the lock where it needs it. */
void globals_record(void);

#endif
