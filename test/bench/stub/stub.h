/*
 * stub.h: a libcuda.so.1 without a device, for measuring the cost of the code around the driver.
 *
 * Every function returns at once, or spins for the time that stub_costs gave it (Foundry's figures for an H100: 37 us to add a
 * kernel node, 0.4 us to set its parameters, 1 us a node to instantiate). It does not check or compute: only time and the number
 * of calls have a meaning. Fails: never.
 *
 * floor_*, in a library of its own, works with any driver.
 */
#ifndef BENCH_STUB_H
#define BENCH_STUB_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#pragma GCC visibility push(default)

/* Nanoseconds per call; instantiate: per node. */
void stub_costs(uint64_t add, uint64_t set, uint64_t instantiate);

/* Calls since the last stub_costs. */
struct stub_counts {
	uint64_t added, set, instantiated /* nodes */, dependencies /* edges */, uploads;
};
void stub_count(struct stub_counts *out);

/* One graph of the set that floor_build makes: the launch of each node, 0 for a memset, and the first graph of the same types. */
struct floor_graph {
	const CUfunction *functions;
	uint32_t nodes, shape;
};

/* Makes all arguments of the calls for these graphs. Memset nodes write to memory; all parameters of launches are 0. */
void *floor_prepare(const struct floor_graph *graphs, uint32_t count, CUdeviceptr memory);
/* The cheapest known sequence of driver calls that makes them: a template per shape, parameters set for each further graph,
 * an instantiation for every graph. Returns 0, or the first CUresult that is not. */
int floor_build(void *prepared);
/* Destroys the set of floor_build. */
int floor_destroy(void *prepared);
void floor_release(void *prepared);

#pragma GCC visibility pop

#endif
