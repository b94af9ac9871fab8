/* ptx_exec_control.h: blocks, guards, branches, calls and barriers (part of ptx_exec.h). */

/* The start of a basic block: imm instructions follow for each active lane. */
HANDLER(BLOCK)
{
	w->fuel -= in->imm;
	w->lane_instructions += (uint64_t)in->imm * w->active;
	if (__builtin_expect(in >= w->join || w->fuel < 0, 0))
		return ptx_block_slow(w, in);
	NEXT;
}

/* @p ahead of a guarded operation; imm: distance to its end. sub: 1 for @!p */
HANDLER(GUARD)
{
	uint32_t p = PRED(0), m = w->group & (in->sub ? ~p : p);

	if (!m)
		return in + in->imm;
	ptx_set_mask(w, m);
	return in + 1;
}

HANDLER(UNGUARD)
{
	if (!w->group)
		return ptx_regroup(w);
	ptx_set_mask(w, w->group);
	return in + 1;
}

HANDLER(BRA) { (void)w; return in + in->imm; }

HANDLER(BRA_P)
{
	uint32_t p = PRED(0), taken = w->group & (in->sub ? ~p : p);

	if (taken == w->group)
		return in + in->imm;
	if (!taken)
		return in + 1;
	return ptx_diverge(w, in + 1, taken, in + in->imm);
}

/* aux targets follow as BRA operations. */
HANDLER(BRX)
{
	const u32a *index = ROW(u32a, 0);
	uint32_t target[PTX_LANES];

	FOR_MASK(i) {
		if (index[i] >= in->aux)
			return ptx_fault_at(w, in, i, PTX_ILLEGAL_ADDRESS, index[i], "branch index %u of %u targets", index[i], in->aux);
		const struct insn *t = in + 1 + index[i];

		target[i] = (uint32_t)(t + t->imm - w->code);
	}
	return ptx_scatter(w, in, target);
}

/* aux: entry of the function; o[0]: the row that keeps the return pc */
HANDLER(CALL)
{
	u32a *ret = OUT(u32a, 0);
	uint32_t back = (uint32_t)(in + 1 - w->code);
	uint32_t target[PTX_LANES];

	EACH ret[i] = back;
	COMMIT(u32a, 0);
	if (w->mask == w->group)
		return w->code + in->aux;
	FOR_MASK(i) target[i] = in->aux;
	return ptx_scatter(w, in, target);
}

HANDLER(RET)
{
	const u32a *ret = ROW(u32a, 0);
	uint32_t first = ret[__builtin_ctz(w->mask)], differ = 0, target[PTX_LANES];

	FOR_MASK(i) { target[i] = ret[i]; differ |= ret[i] ^ first; }
	if (!differ && w->mask == w->group)
		return w->code + first;
	return ptx_scatter(w, in, target);
}

HANDLER(EXIT) { return ptx_exit(w, in); }
HANDLER(BAR) { return ptx_barrier(w, in); }
HANDLER(BAR_WARP) { return ptx_warp_barrier(w, in); }
HANDLER(NOP) { (void)w; return in + 1; }

/* PTX lets no sleep last longer than a millisecond. */
#define LONGEST_SLEEP 1000000

/* The processor is free meanwhile: lanes that wait for another process would keep it from its work. */
HANDLER(NANOSLEEP)
{
	const u32a *asked = ROW(u32a, 0);
	struct timespec t = {0, 0};

	FOR_MASK(i)
		if (asked[i] > t.tv_nsec)
			t.tv_nsec = asked[i] < LONGEST_SLEEP ? asked[i] : LONGEST_SLEEP;
	nanosleep(&t, NULL);
	return in + 1;
}

HANDLER(TRAP)
{
	return ptx_fault_at(w, in, (uint32_t)__builtin_ctz(w->mask), PTX_TRAP, 0, "executed");
}

HANDLER(UNSUPPORTED)
{
	return ptx_fault_at(w, in, (uint32_t)__builtin_ctz(w->mask), PTX_UNSUPPORTED, 0, "is not supported");
}

/* The processor's clock advances with the work done, so that runs repeat. The global timer tells the time: by it a kernel knows how long it
 * has waited for another process. */
HANDLER(CLOCK)
{
	uint64_t now = w->launch->clock += 4;

	if (in->sub & CLOCK_GLOBAL) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	if (in->cls == CLS_W64) {
		u64a *d = OUT(u64a, 0);

		EACH d[i] = now;
		COMMIT(u64a, 0);
	} else {
		u32a *d = OUT(u32a, 0);

		EACH d[i] = (uint32_t)(in->sub & CLOCK_UPPER ? now >> 32 : now);
		COMMIT(u32a, 0);
	}
	return in + 1;
}

/* Copies imm bytes within each lane's frame: from frame offset o[1] to o[0] (arguments and results of calls). */
HANDLER(COPY_FRAME)
{
	uint32_t n = w->launch->k->frame_bytes;

	FOR_MASK(i) {
		uint8_t *f = w->frame + (size_t)i * n;

		memmove(f + in->o[0], f + in->o[1], (size_t)in->imm);
	}
	return in + 1;
}

/* activemask: the lanes running together */
HANDLER(SYNC_MASK)
{
	u32a *d = OUT(u32a, 0);
	uint32_t m = w->group;

	EACH d[i] = m;
	COMMIT(u32a, 0);
	return in + 1;
}
