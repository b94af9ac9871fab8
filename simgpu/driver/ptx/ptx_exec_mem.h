/*
 * ptx_exec_mem.h: loads, stores and address conversions (part of ptx_exec.h).
 *
 * Global memory: the range that answered the instruction's last access is tried first, for the whole row at once. If all
 * lanes are inside and aligned, the row is moved without further checks; otherwise each lane is resolved on its own, which
 * also finds the lane to blame.
 */

/* The pattern of the addresses of a full row. */
enum pattern { SCATTERED, CONTIGUOUS, UNIFORM };

static inline const u64a *addresses(struct warp *w, const struct insn *in, u64a *tmp)
{
	if (!(in->sub & MEM_ADDR32))
		return ROW(u64a, in->vec);
	const u32a *a = ROW(u32a, in->vec);

	EACH tmp[i] = a[i];
	return tmp;
}

static inline enum pattern pattern_of(const u64a *a, uint32_t bytes)
{
	uint64_t first = a[0], step = 0, same = 0;

	if (a[1] == first) {
		for (int i = 0; i < PTX_LANES; i++)
			same |= a[i] ^ first;
		return same ? SCATTERED : UNIFORM;
	}
	if (a[1] - first != bytes)
		return SCATTERED;
	for (int i = 0; i < PTX_LANES; i++)
		step |= a[i] - first - (uint64_t)i * bytes;
	return step ? SCATTERED : CONTIGUOUS;
}

/* Turns the row of addresses into host addresses in out if all lanes of the mask are aligned and inside [base, base+size). */
static inline bool all_inside(const struct warp *w, const u64a *a, uint64_t offset, uint64_t base, uint64_t size, uint32_t bytes,
                              uint64_t host, u64a *out)
{
	uint64_t limit, bad = 0;
	uint32_t mask = w->mask;

	if (size < bytes)
		return false;
	limit = size - bytes;
	offset -= base;
	if (mask == UINT32_MAX) {
		EACH {
			uint64_t o = a[i] + offset;

			out[i] = host + o;
			bad |= (uint64_t)(o > limit) | (o & (bytes - 1));
		}
	} else {
		EACH {
			uint64_t o = a[i] + offset;

			out[i] = host + o;
			bad |= mask >> i & 1 ? (uint64_t)(o > limit) | (o & (bytes - 1)) : 0;
		}
	}
	return !bad;
}

/* Host addresses of the lanes of the mask. False after a fault. */
static bool resolve_lanes(struct warp *w, const struct insn *in, const u64a *a, uint32_t bytes, u64a *out)
{
	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		uint8_t *p = ptx_resolve(w, in, lane, a[lane] + (uint64_t)in->imm, bytes);

		if (!p)
			return false;
		out[lane] = (uint64_t)(uintptr_t)p;
	}
	return true;
}

static inline bool host_addresses(struct warp *w, const struct insn *in, enum ptx_space space, const u64a *a, uint32_t bytes, u64a *out)
{
	if (space == SP_GLOBAL) {
		const struct ptx_range *r = &w->launch->cache[in->aux];

		/* A device address is its own host address. */
		if (all_inside(w, a, (uint64_t)in->imm, r->base, r->size, bytes, r->base, out))
			return true;
	} else if (space == SP_SHARED) {
		if (all_inside(w, a, (uint64_t)in->imm, 0, w->launch->shared_bytes, bytes, (uint64_t)(uintptr_t)w->cta->shared, out))
			return true;
	}
	return resolve_lanes(w, in, a, bytes, out);
}

/* The host address of lane 0 if a full row is contiguous or uniform; else NULL. */
static inline uint8_t *row_address(struct warp *w, const struct insn *in, enum ptx_space space, const u64a *a, uint64_t span, uint32_t bytes)
{
	uint64_t at = a[0] + (uint64_t)in->imm;

	if (at & (bytes - 1))
		return NULL;
	if (space == SP_GLOBAL) {
		const struct ptx_range *r = &w->launch->cache[in->aux];

		return at - r->base <= r->size && r->size - (at - r->base) >= span ? (uint8_t *)(uintptr_t)at : NULL;
	}
	if (space == SP_SHARED) {
		uint64_t size = w->launch->shared_bytes;

		return at <= size && size - at >= span ? w->cta->shared + at : NULL;
	}
	return NULL;
}

static inline uint64_t load_element(const uint8_t *p, uint32_t size, bool is_signed)
{
	uint64_t v = 0;

	switch (size) {
	case 1: v = is_signed ? (uint64_t)(int64_t)(int8_t)*p : *p; break;
	case 2: v = is_signed ? (uint64_t)(int64_t)(int16_t)*(const u16a *)p : *(const u16a *)p; break;
	case 4: v = is_signed ? (uint64_t)(int64_t)(int32_t)*(const u32a *)p : *(const u32a *)p; break;
	default: v = *(const u64a *)p; break;
	}
	return v;
}

#define FOR_MASK(i) for (uint32_t m_ = w->mask, i; m_ && (i = (uint32_t)__builtin_ctz(m_), 1); m_ &= m_ - 1)

static inline __attribute__((always_inline)) const struct insn *load(struct warp *w, const struct insn *in, enum ptx_space space, uint32_t size)
{
	u64a wide[PTX_LANES] __attribute__((aligned(128))), host[PTX_LANES] __attribute__((aligned(128)));
	const u64a *a = addresses(w, in, wide);
	uint32_t n = in->vec, bytes = size * n;
	bool plain = size == 8 ? in->cls == CLS_W64 : in->cls != CLS_W64 && !(in->sub & MEM_SIGNED);

	if (plain && w->mask == UINT32_MAX && n == 1 && space != SP_GENERIC && (size == 4 || size == 8)) {
		enum pattern pat = pattern_of(a, size);

		if (pat == CONTIGUOUS) {
			const uint8_t *p = row_address(w, in, space, a, (uint64_t)size * PTX_LANES, size);

			if (p) {
				memcpy(ROW(u8a, 0), p, size * PTX_LANES);
				return in + 1;
			}
		} else if (pat == UNIFORM) {
			const uint8_t *p = row_address(w, in, space, a, size, size);

			if (p) {
				if (size == 4) {
					uint32_t v = *(const u32a *)p;
					u32a *d = ROW(u32a, 0);

					EACH d[i] = v;
				} else {
					uint64_t v = *(const u64a *)p;
					u64a *d = ROW(u64a, 0);

					EACH d[i] = v;
				}
				return in + 1;
			}
		}
	}
	if (!host_addresses(w, in, space, a, bytes, host))
		return NULL;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t at = (uint64_t)k * size;

		if (plain && w->mask == UINT32_MAX) {
			if (size == 8) {
				u64a *d = ROW(u64a, k);

				for (int i = 0; i < PTX_LANES; i++)
					d[i] = *(const u64a *)(uintptr_t)(host[i] + at);
			} else {
				u32a *d = ROW(u32a, k);

				for (int i = 0; i < PTX_LANES; i++)
					d[i] = (uint32_t)load_element((const uint8_t *)(uintptr_t)(host[i] + at), size, false);
			}
		} else if (in->cls == CLS_W64) {
			u64a *d = ROW(u64a, k);

			FOR_MASK(i) d[i] = load_element((const uint8_t *)(uintptr_t)(host[i] + at), size, in->sub & MEM_SIGNED);
		} else {
			u32a *d = ROW(u32a, k);
			uint32_t keep = in->cls == CLS_W16 ? 0xffff : UINT32_MAX;

			FOR_MASK(i) d[i] = (uint32_t)load_element((const uint8_t *)(uintptr_t)(host[i] + at), size, in->sub & MEM_SIGNED) & keep;
		}
	}
	return in + 1;
}

static inline void store_element(uint8_t *p, uint32_t size, uint64_t v)
{
	switch (size) {
	case 1: *p = (uint8_t)v; break;
	case 2: *(u16a *)p = (uint16_t)v; break;
	case 4: *(u32a *)p = (uint32_t)v; break;
	default: *(u64a *)p = v; break;
	}
}

static inline __attribute__((always_inline)) const struct insn *store(struct warp *w, const struct insn *in, enum ptx_space space, uint32_t size)
{
	u64a wide[PTX_LANES] __attribute__((aligned(128))), host[PTX_LANES] __attribute__((aligned(128)));
	const u64a *a = addresses(w, in, wide);
	uint32_t n = in->vec, bytes = size * n;
	bool plain = size == 8 || in->cls != CLS_W64;

	if (plain && w->mask == UINT32_MAX && n == 1 && space != SP_GENERIC && (size == 4 || size == 8) && pattern_of(a, size) == CONTIGUOUS) {
		uint8_t *p = row_address(w, in, space, a, (uint64_t)size * PTX_LANES, size);

		if (p) {
			memcpy(p, ROW(u8a, 0), size * PTX_LANES);
			return in + 1;
		}
	}
	if (!host_addresses(w, in, space, a, bytes, host))
		return NULL;
	/* Lane by lane, so that the highest lane wins if addresses meet. */
	for (uint32_t k = 0; k < n; k++) {
		uint64_t at = (uint64_t)k * size;

		if (in->cls == CLS_W64) {
			const u64a *s = ROW(u64a, k);

			FOR_MASK(i) store_element((uint8_t *)(uintptr_t)(host[i] + at), size, s[i]);
		} else {
			const u32a *s = ROW(u32a, k);

			FOR_MASK(i) store_element((uint8_t *)(uintptr_t)(host[i] + at), size, s[i]);
		}
	}
	return in + 1;
}

#define MEMORY(NAME, F, SPACE) \
	HANDLER(NAME##_1) { return F(w, in, SPACE, 1); } \
	HANDLER(NAME##_2) { return F(w, in, SPACE, 2); } \
	HANDLER(NAME##_4) { return F(w, in, SPACE, 4); } \
	HANDLER(NAME##_8) { return F(w, in, SPACE, 8); }
/* Generic addresses take the global path: windows are in no range of device memory. */
MEMORY(LDG, load, SP_GLOBAL)
MEMORY(LDS, load, SP_SHARED)
MEMORY(STG, store, SP_GLOBAL)
MEMORY(STS, store, SP_SHARED)

/* Local and parameter space */
MEMORY(LDX, load, SP_GENERIC)
MEMORY(STX, store, SP_GENERIC)

/* A kernel parameter at a fixed offset, the same for all lanes; the decoder checked the range. */
HANDLER(LD_KPARAM)
{
	for (uint32_t k = 0; k < in->vec; k++) {
		uint64_t v = load_element(w->launch->params + in->imm + (uint64_t)k * in->size, in->size, in->sub & MEM_SIGNED);

		if (in->cls == CLS_W64) {
			u64a *d = OUT(u64a, k);

			EACH d[i] = v;
			COMMIT(u64a, k);
		} else {
			u32a *d = OUT(u32a, k);
			uint32_t x = (uint32_t)v & (in->cls == CLS_W16 ? 0xffff : UINT32_MAX);

			EACH d[i] = x;
			COMMIT(u32a, k);
		}
	}
	return in + 1;
}

UNARY(TOSHARED, u64a, u64a, a - PTX_SHARED_WINDOW)
UNARY(FROMSHARED, u64a, u64a, a + PTX_SHARED_WINDOW)
UNARY(TOLOCAL, u64a, u64a, a - PTX_LOCAL_WINDOW)
UNARY(FROMLOCAL, u64a, u64a, a + PTX_LOCAL_WINDOW)
UNARY(TOPARAM, u64a, u64a, a - PTX_PARAM_WINDOW)
UNARY(FROMPARAM, u64a, u64a, a + PTX_PARAM_WINDOW)

HANDLER(ISSPACEP)
{
	const u64a *a = ROW(u64a, 1);
	uint32_t m = 0;

	for (int i = 0; i < PTX_LANES; i++) {
		uint64_t window = a[i] & PTX_WINDOW_MASK;
		enum ptx_space s = window == PTX_SHARED_WINDOW ? SP_SHARED : window == PTX_LOCAL_WINDOW ? SP_LOCAL : window == PTX_PARAM_WINDOW ? SP_PARAM : SP_GLOBAL;

		m |= (uint32_t)(s == (enum ptx_space)in->sub) << i;
	}
	PRED(0) = pred_blend(w, PRED(0), m);
	return in + 1;
}

/* o: d, p, a, b, c, members; sub: enum ptx_shfl. A lane that does not take part gives its stale value, as on a device. */
static const struct insn *shuffle(struct warp *w, const struct insn *in)
{
	const u32a *pb = ROW(u32a, 3), *pc = ROW(u32a, 4);
	uint32_t src[PTX_LANES] __attribute__((aligned(128))), from[PTX_LANES] __attribute__((aligned(128))), valid = 0;
	u32a *d;

	memcpy(src, ROW(u32a, 2), sizeof src);
	EACH {
		int32_t lane = i, b = (int32_t)(pb[i] & 31), seg = (int32_t)(pc[i] >> 8 & 31), clamp = (int32_t)(pc[i] & 31);
		int32_t max = (lane & seg) | (clamp & ~seg), first = lane & seg;
		int32_t j = in->sub == SHFL_UP ? lane - b : in->sub == SHFL_DOWN ? lane + b : in->sub == SHFL_BFLY ? lane ^ b : first | (b & ~seg);
		bool ok = in->sub == SHFL_UP ? j >= max : j <= max;

		from[i] = (uint32_t)(ok ? j : lane) & 31;
		valid |= ok ? 1u << i : 0;
	}
	d = OUT(u32a, 0);
	for (int i = 0; i < PTX_LANES; i++)
		d[i] = src[from[i]];
	COMMIT(u32a, 0);
	PRED(1) = pred_blend(w, PRED(1), valid);
	return in + 1;
}

HANDLER(SHFL)
{
	const u32a *members = ROW(u32a, 5);

	return ptx_all_here(w, members) ? shuffle(w, in) : ptx_sync(w, in, members, shuffle);
}

HANDLER(ATOM) { return ptx_atomic(w, in); }
HANDLER(MULTIMEM) { return ptx_multimem(w, in); }
HANDLER(VOTE) { return ptx_vote(w, in); }
HANDLER(MATCH) { return ptx_vote(w, in); }
HANDLER(REDUX) { return ptx_vote(w, in); }
HANDLER(ELECT) { return ptx_vote(w, in); }
HANDLER(ASYNC_COPY) { return ptx_async(w, in); }
HANDLER(ASYNC_COMMIT) { return ptx_async(w, in); }
HANDLER(ASYNC_WAIT) { return ptx_async(w, in); }
HANDLER(LDMATRIX) { return ptx_matrix(w, in); }
HANDLER(STMATRIX) { return ptx_matrix(w, in); }
HANDLER(MMA_OPERANDS) { (void)w; return in + 1; }
HANDLER(MMA) { return ptx_matrix(w, in); }
