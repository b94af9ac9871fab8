/* sha256.c: prints the hashes of pieces of N bytes, `N HASH` a line: by the portable blocks, and by those that sha256 chooses. */
#include "../preload/sha256.c"

#include <stdio.h>

static void put(size_t size, const uint8_t hash[32])
{
	printf("%zu ", size);
	for (int i = 0; i < 32; i++)
		printf("%02x", hash[i]);
	puts("");
}

/* Whole blocks only, without the padding of a message. */
static void put_state(size_t n, const uint32_t state[8])
{
	printf("state %zu", n);
	for (int i = 0; i < 8; i++)
		printf(" %08x", (unsigned)state[i]);
	puts("");
}

int main(void)
{
	static uint8_t data[70000], hash[32];
	const struct constants *c = constants();
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t size = 0; size < sizeof data; size = size < 200 ? size + 1 : size * 2 + 1) {
		sha256(data, size, hash);
		put(size, hash);
	}
	for (size_t n = 1; n < 1000; n *= 3) {
		uint32_t portable[8], chosen[8];
		memcpy(portable, c->h, sizeof portable);
		memcpy(chosen, c->h, sizeof chosen);
		blocks(c->k, portable, data, n);
		add_blocks(c, chosen, data, n);
		put_state(n, portable);
		put_state(n, chosen);
	}
	return 0;
}
