/*
 * collective.cu: one step of a communicator, made by all its ranks at once, each in a process of its own.
 *
 * In: the communicator (comm.h) and one call. Out: the call's result in recv. Every rank posts a piece of its data in memory that all ranks
 * have mapped, waits for all others' pieces, reads them, and says that it is done. Fails: a trap if a rank does not come within the
 * deadline, if it makes another call or has made another number of steps, or if the communicator's memory is not one.
 */
#include "../kernels/device.h"
#include "comm.h"

#define BARRIER __nvvm_bar_sync(0)

DEVICE unsigned long long now(void)
{
	unsigned long long t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

DEVICE void must(bool held)
{
	if (!held)
		asm volatile("trap;");
}

/* Lets the processes of other ranks run. */
DEVICE void rest(void) { asm volatile("nanosleep.u32 100000;"); }

struct round {
	struct nccl_device *c;
	unsigned step, tag;
};

DEVICE struct nccl_block *block_of(struct nccl_device *c, int rank) { return (struct nccl_block *)c->peers[rank]; }

/* Thread r waits for rank r. No rank may be more than a step ahead: it cannot go on before this one has read its piece. */
DEVICE void await_posted(struct round *r)
{
	if (THREAD < r->c->ranks) {
		volatile struct nccl_block *b = block_of(r->c, THREAD);
		unsigned long long begun = now();
		unsigned seen;
		while ((seen = b->posted) != r->step) {
			must(seen == r->step - 1 && now() - begun < r->c->deadline);
			rest();
		}
		must(b->tag == r->tag);
	}
	BARRIER;
}

DEVICE void await_done(struct round *r)
{
	if (THREAD < r->c->ranks) {
		volatile struct nccl_block *b = block_of(r->c, THREAD);
		unsigned long long begun = now();
		unsigned seen;
		while ((seen = b->done) != r->step - 1) {
			must(seen == r->step - 2 && now() - begun < r->c->deadline);
			rest();
		}
	}
	BARRIER;
}

/* Offers bytes of src to all ranks; src may be 0. */
DEVICE void post(struct round *r, const char *src, unsigned long long bytes)
{
	struct nccl_block *own = block_of(r->c, r->c->rank);
	r->step++;
	await_done(r);
#pragma unroll 1
	for (unsigned long long i = THREAD; src && i < bytes; i += NCCL_THREADS)
		own->data[i] = src[i];
	BARRIER;
	if (THREAD == 0) {
		((volatile struct nccl_block *)own)->tag = r->tag;
		((volatile struct nccl_block *)own)->posted = r->step;
	}
	await_posted(r);
}

DEVICE void done(struct round *r)
{
	BARRIER;
	if (THREAD == 0)
		((volatile struct nccl_block *)block_of(r->c, r->c->rank))->done = r->step;
}

DEVICE void copy(char *to, const char *from, unsigned long long bytes)
{
#pragma unroll 1
	for (unsigned long long i = THREAD; i < bytes; i += NCCL_THREADS)
		to[i] = from[i];
}

template <typename T> DEVICE T widen(T v) { return v; }
DEVICE float widen(f16 v) { return (float)v; }
DEVICE float widen(bf16 v) { return value(v, 0); }
template <typename W> DEVICE void narrow(f16 *to, W v) { *to = (f16)v; }
template <typename W> DEVICE void narrow(bf16 *to, W v) { to->bits = to_bf16((float)v); }
template <typename T, typename W> DEVICE void narrow(T *to, W v) { *to = (T)v; }

template <typename W> DEVICE W combine(W a, W b, int op)
{
	switch (op) {
	case NCCL_PROD: return a * b;
	case NCCL_MAX: return a > b ? a : b;
	case NCCL_MIN: return a < b ? a : b;
	default: return a + b;
	}
}

/* In the order of ranks on every rank, so that all have the same bits. */
template <typename T> DEVICE void reduce_as(struct nccl_device *c, char *to, unsigned long long bytes, int op)
{
	for (unsigned long long i = THREAD; i < bytes / sizeof(T); i += NCCL_THREADS) {
		auto sum = widen(((const T *)block_of(c, 0)->data)[i]);
#pragma unroll 1
		for (int r = 1; r < c->ranks; r++)
			sum = combine(sum, widen(((const T *)block_of(c, r)->data)[i]), op);
		if (op == NCCL_AVG)
			sum = sum / c->ranks;
		narrow((T *)to + i, sum);
	}
}

SHARED_CODE void reduce(struct nccl_device *c, char *to, unsigned long long bytes, int type, int op)
{
	switch (type) {
	case NCCL_INT8: return reduce_as<signed char>(c, to, bytes, op);
	case NCCL_UINT8: return reduce_as<unsigned char>(c, to, bytes, op);
	case NCCL_INT32: return reduce_as<int>(c, to, bytes, op);
	case NCCL_UINT32: return reduce_as<unsigned>(c, to, bytes, op);
	case NCCL_INT64: return reduce_as<long long>(c, to, bytes, op);
	case NCCL_UINT64: return reduce_as<unsigned long long>(c, to, bytes, op);
	case NCCL_F16: return reduce_as<f16>(c, to, bytes, op);
	case NCCL_F32: return reduce_as<float>(c, to, bytes, op);
	case NCCL_F64: return reduce_as<double>(c, to, bytes, op);
	case NCCL_BF16: return reduce_as<bf16>(c, to, bytes, op);
	}
}

DEVICE struct nccl_mail *mail_of(struct nccl_device *c, int to, int from)
{
	return (struct nccl_mail *)(c->peers[to] + (__builtin_offsetof(struct nccl_device, mail) - __builtin_offsetof(struct nccl_device, block))) + from;
}

/* One letter of a send or receive, if it is its turn; at: how far it has come. Returns how far it has come now, and done + 1 at its end. */
DEVICE unsigned long long exchange(struct nccl_device *c, const struct nccl_pair *p, unsigned long long at)
{
	SHARED unsigned posted, taken, tag;
	struct nccl_mail *m = p->receives ? mail_of(c, c->rank, p->peer) : mail_of(c, p->peer, c->rank);
	volatile struct nccl_mail *seen = m;
	unsigned long long part = p->bytes - at < NCCL_LETTER ? p->bytes - at : NCCL_LETTER;
	BARRIER;
	if (THREAD == 0) {
		posted = seen->posted;
		taken = seen->taken;
		tag = seen->tag;
	}
	BARRIER;
	must(posted == taken || posted == taken + 1);
	if (p->receives) {
		if (posted == taken)
			return at;
		must(tag == (unsigned)(p->bytes - at));
		copy((char *)p->buffer + at, m->data, part);
		BARRIER;
		if (THREAD == 0)
			seen->taken = posted;
		return at + part;
	}
	if (posted != taken)
		return at;
	if (at == p->bytes) /* the last letter was taken */
		return at + 1;
	copy(m->data, (const char *)p->buffer + at, part);
	BARRIER;
	if (THREAD == 0) {
		seen->tag = (unsigned)(p->bytes - at);
		seen->posted = posted + 1;
	}
	return at + part;
}

/* All sends and receives of a group. Fails: a trap if no other rank does its part within the deadline, or sends another number of bytes. */
KERNEL nccl_exchange(struct nccl_device *c, struct nccl_pairs all)
{
	unsigned long long at[NCCL_PAIRS], begun = now();
	must(c->magic == NCCL_MAGIC && c->self == (unsigned long long)c && all.count <= NCCL_PAIRS);
	for (int i = 0; i < all.count; i++)
		at[i] = 0;
	for (int left = all.count; left > 0;) {
		bool moved = false;
		left = 0;
		for (int i = 0; i < all.count; i++) {
			const struct nccl_pair *p = &all.list[i];
			unsigned long long end = p->bytes + !p->receives, before = at[i];
			if (before == end)
				continue;
			left++;
			at[i] = exchange(c, p, before);
			moved |= at[i] != before;
		}
		if (moved)
			begun = now();
		else if (left > 0) {
			must(now() - begun < c->deadline);
			rest();
		}
	}
}

/* bytes: of a rank's part. A call of several pieces makes one step for each. */
KERNEL nccl_step(struct nccl_device *c, const char *send, char *recv, unsigned long long bytes, int call, int type, int op, int root)
{
	must(c->magic == NCCL_MAGIC && c->self == (unsigned long long)c && NCCL_THREADS >= c->ranks);
	struct round r = {c, c->step, (unsigned)bytes * 31 + (unsigned)(call << 24 | type << 16 | op << 8 | root)};
	int segments = call == NCCL_REDUCE_SCATTER ? c->ranks : 1;
	for (int s = 0; s < segments; s++)
		for (unsigned long long at = 0; at < bytes; at += NCCL_PIECE) {
			unsigned long long part = bytes - at < NCCL_PIECE ? bytes - at : NCCL_PIECE;
			post(&r, call == NCCL_BROADCAST && c->rank != root ? 0 : send + s * bytes + at, part);
			switch (call) {
			case NCCL_ALL_REDUCE: reduce(c, recv + at, part, type, op); break;
			case NCCL_REDUCE_SCATTER:
				if (s == c->rank)
					reduce(c, recv + at, part, type, op);
				break;
			case NCCL_BROADCAST: copy(recv + at, block_of(c, root)->data, part); break;
			case NCCL_ALL_GATHER:
				for (int peer = 0; peer < c->ranks; peer++)
					copy(recv + peer * bytes + at, block_of(c, peer)->data, part);
				break;
			}
			done(&r);
		}
	BARRIER;
	if (THREAD == 0)
		c->step = r.step;
}
