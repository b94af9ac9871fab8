/* semaphore.h: the value that split-k semaphores hold between launches; shared by host and device code. */
#ifndef SEMAPHORE_H
#define SEMAPHORE_H

#define SEMAPHORE_REST 0x5ca1ab1eu

#endif
