/*
 * lz4.c: one raw LZ4 block.
 *
 * In: the block and the exact size of its contents (both from a fat binary's entry). Out: that many bytes. Fails: false
 * for a block that ends early, reaches back before its start or holds another number of bytes.
 */
#include "modules/modules.h"

#include <string.h>

/* A length of 15 goes on in further bytes, each added, up to and including the first below 255. */
static bool extend(const uint8_t **p, const uint8_t *end, size_t *len)
{
	uint8_t b;
	do {
		if (*p == end)
			return false;
		b = *(*p)++;
		*len += b;
	} while (b == 255);
	return true;
}

bool lz4_decode(const void *src, size_t src_len, void *dst, size_t dst_len)
{
	const uint8_t *p = src, *end = p + src_len;
	uint8_t *out = dst, *out_end = out + dst_len;
	while (p < end) {
		uint8_t token = *p++;
		size_t literals = token >> 4, match = (token & 15) + 4;
		if (literals == 15 && !extend(&p, end, &literals))
			return false;
		if (literals > (size_t)(end - p) || literals > (size_t)(out_end - out))
			return false;
		memcpy(out, p, literals);
		out += literals;
		p += literals;
		if (p == end) /* the last sequence is literals only */
			break;
		if (end - p < 2)
			return false;
		size_t back = (size_t)p[0] | (size_t)p[1] << 8;
		p += 2;
		if (match == 19 && !extend(&p, end, &match))
			return false;
		if (!back || back > (size_t)(out - (uint8_t *)dst) || match > (size_t)(out_end - out))
			return false;
		for (; match; match--, out++) /* overlapping on purpose: a short distance repeats */
			*out = *(out - back);
	}
	return out == out_end;
}
