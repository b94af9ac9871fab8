/*
 * ptx_multimem.c: multimem instructions: one address that stands for memory of several devices.
 *
 * In:  a lane's address, which struct ptx_memory turns into one host address a device. Out: a value of all of them, or a store or an
 *      atomic addition to each. Fails: with a fault for an address that stands for none, above all one of plain memory.
 *
 * A device adds up in an order of its own. Here it is that of the devices' numbers.
 */
#include "ptx_half.h"
#include "ptx_internal.h"

#include <string.h>

static size_t hosts_of(struct warp *w, const struct insn *in, uint32_t lane, uint8_t *hosts[PTX_MOST_DEVICES])
{
	const struct ptx_memory *mem = w->launch->mem;
	uint64_t addr = ptx_lane(w, in->o[(in->aux & MM_KIND) == MM_REDUCE ? in->vec : 0], CLS_W64, lane) + (uint64_t)in->imm;
	uint32_t bytes = in->size * in->vec;
	size_t n;

	if (addr & (bytes - 1)) {
		ptx_fault_at(w, in, lane, PTX_MISALIGNED, addr, "address 0x%llx is not a multiple of %u", (unsigned long long)addr, bytes);
		return 0;
	}
	n = mem->find_all ? mem->find_all(mem->ctx, addr, bytes, hosts) : 0;
	if (!n)
		ptx_fault_at(w, in, lane, PTX_ILLEGAL_ADDRESS, addr, "address 0x%llx is no multicast address with memory of each device", (unsigned long long)addr);
	return n;
}

static uint64_t element(const uint8_t *p, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

/* .acc::f32: halves are added up in float and rounded once */
static uint64_t sum_of_halves(uint8_t *const hosts[], size_t n, size_t at, uint32_t size, enum ptx_type t)
{
	bool bfloat = t == TY_BF16 || t == TY_BF16X2;
	uint64_t r = 0;

	for (uint32_t half = 0; half < size; half += 2) {
		float sum = 0;

		for (size_t i = 0; i < n; i++) {
			uint32_t bits = (uint32_t)element(hosts[i] + at + half, 2);

			sum += bfloat ? bfloat_float(bits) : half_float(bits);
		}
		r |= (uint64_t)(bfloat ? float_bfloat(sum) : float_half(sum)) << 8 * half;
	}
	return r;
}

static uint64_t reduce(uint8_t *const hosts[], size_t n, size_t at, const struct insn *in)
{
	enum ptx_atom op = (enum ptx_atom)(in->aux >> MM_OP & 15);
	enum ptx_type t = (enum ptx_type)(in->aux >> MM_TYPE & 255);
	uint64_t v;

	if (in->aux & MM_ACC32)
		return sum_of_halves(hosts, n, at, in->size, t);
	v = element(hosts[0] + at, in->size);
	for (size_t i = 1; i < n; i++)
		v = ptx_atom_result(op, t, v, element(hosts[i] + at, in->size), 0);
	return v;
}

/* o: ld_reduce: results, address; else address, values. Lanes in order. */
const struct insn *ptx_multimem(struct warp *w, const struct insn *in)
{
	uint32_t kind = in->aux & MM_KIND;

	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		uint8_t *hosts[PTX_MOST_DEVICES];
		size_t n = hosts_of(w, in, lane, hosts);

		if (!n)
			return NULL;
		for (uint32_t k = 0; k < in->vec; k++) {
			size_t at = (size_t)k * in->size;

			if (kind == MM_REDUCE) {
				ptx_set_lane(w, in->o[k], in->cls, lane, reduce(hosts, n, at, in));
				continue;
			}
			for (size_t i = 0; i < n; i++) {
				uint64_t v = ptx_lane(w, in->o[1 + k], in->cls, lane);

				if (kind == MM_STORE)
					memcpy(hosts[i] + at, &v, in->size);
				else
					ptx_atom_at(hosts[i] + at, in->size, (enum ptx_atom)(in->aux >> MM_OP & 15), (enum ptx_type)(in->aux >> MM_TYPE & 255), v, 0);
			}
		}
	}
	return in + 1;
}
