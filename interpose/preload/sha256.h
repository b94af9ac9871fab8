/* sha256.h: SHA-256 (FIPS 180-4) of one piece of memory. Cannot fail. */
#ifndef MEDUSA_SHA256_H
#define MEDUSA_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const void *data, size_t size, uint8_t out[32]);

#endif
