/*
 * places.h: the addresses at which engines have placed the objects that graphs refer to.
 *
 * In: marks of tensors and phases. Out: medusa_tensor_get and medusa_block_map, with which a restore compares this process with
 * the recorded one. Functions here need the lock of core.h held.
 */
#ifndef MEDUSA_PLACES_H
#define MEDUSA_PLACES_H

#include "medusa.h"

void places_tensor(const struct medusa_tensor *t);
/* The capture phase begins: keeps the current blocks. Later calls have no effect. */
void places_freeze(void);

#endif
