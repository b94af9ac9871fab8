/* test.h: checks that print their place if they fail. */
#ifndef VBLAS_TEST_H
#define VBLAS_TEST_H

#include <stdio.h>

extern int failures;

#define CHECK(condition, ...)                                   \
	do {                                                        \
		if (!(condition)) {                                     \
			failures++;                                         \
			printf("FAIL %s:%d: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__);                                \
			printf("\n");                                       \
		}                                                       \
	} while (0)

/* A linear layer of the demo's model: activations [m][k] times weight [n][k]. */
struct layer {
	const char *name;
	int n, k;
};
#define DEMO_LAYERS {{"qkv", 128, 64}, {"o", 64, 64}, {"gate_up", 352, 64}, {"down", 64, 176}, {"head", 512, 64}}

void test_plan(void);
void test_products(void);
void test_split(void);
void test_capture(void);
void test_errors(void);

#endif
