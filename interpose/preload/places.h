/*
 * places.h: where engines have put what graphs refer to.
 *
 * In: marks of tensors and phases. Out: medusa_tensor_get and medusa_block_map, by which a restore compares this process
 * with the recorded one. Functions here need the lock of core.h held.
 */
#ifndef MEDUSA_PLACES_H
#define MEDUSA_PLACES_H

#include "medusa.h"

void places_tensor(const struct medusa_tensor *t);
/* The capture phase begins: keeps the blocks as they are now. Later calls change nothing. */
void places_freeze(void);

#endif
