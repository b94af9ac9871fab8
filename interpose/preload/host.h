/*
 * host.h: the process's own memory, which the device does not read.
 *
 * In: /proc/self/maps at `ready`. Out: one host record. Fails: the file cannot be read; the record is missing then.
 */
#ifndef MEDUSA_HOST_H
#define MEDUSA_HOST_H

/* Takes the lock when it needs it. */
void host_record(void);

#endif
