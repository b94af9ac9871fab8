/*
 * layout.c: the layout that programs compiled against medusa.h and libmedusa.h rely on. It is written by hand and compiles only if
 * the headers keep it: sizes and offsets in bytes, values of constants, and the types of functions. Protocol 1; x86-64 and arm64.
 * A line here changes only together with MEDUSA_PROTOCOL (docs/promises.md).
 */
#include "libmedusa.h"
#include "medusa.h"

#define AT(s, field, offset, size)                                                                      \
	_Static_assert(offsetof(struct s, field) == (offset), "offset of " #s "." #field);             \
	_Static_assert(sizeof(((struct s *)0)->field) == (size), "size of " #s "." #field)
#define SIZE(s, size) _Static_assert(sizeof(struct s) == (size), "size of " #s)
#define IS(name, value) _Static_assert((name) == (value), #name)

IS(MEDUSA_PROTOCOL, 1);

AT(medusa_tensor, name, 0, 8);
AT(medusa_tensor, addr, 8, 8);
AT(medusa_tensor, size, 16, 8);
AT(medusa_tensor, role, 24, 4);
AT(medusa_tensor, dtype, 28, 4);
AT(medusa_tensor, fill, 32, 4);
AT(medusa_tensor, ndim, 36, 4);
AT(medusa_tensor, shape, 40, 64);
AT(medusa_tensor, lo, 104, 8);
AT(medusa_tensor, hi, 112, 8);
SIZE(medusa_tensor, 120);

AT(medusa_kv_profile, kv_bytes, 0, 8);
AT(medusa_kv_profile, total, 8, 8);
AT(medusa_kv_profile, free_before, 16, 8);
AT(medusa_kv_profile, free_after, 24, 8);
AT(medusa_kv_profile, peak_forward, 32, 8);
AT(medusa_kv_profile, utilization, 40, 8);
AT(medusa_kv_profile, profile_tokens, 48, 8);
AT(medusa_kv_profile, workspace, 56, 8);
SIZE(medusa_kv_profile, 64);

AT(medusa_alloc, addr, 0, 8);
AT(medusa_alloc, size, 8, 8);
AT(medusa_alloc, kind, 16, 4);
AT(medusa_alloc, thread, 20, 4);
AT(medusa_alloc, live, 24, 4);
AT(medusa_alloc, phase, 28, 4);
SIZE(medusa_alloc, 32);

AT(medusa_exact, base, 0, 8);
AT(medusa_exact, size, 8, 8);
AT(medusa_exact, state, 16, 4);
AT(medusa_exact, reason, 20, 124);
SIZE(medusa_exact, 144);

AT(medusa_event, handle, 0, 8);
AT(medusa_event, flags, 8, 4);
AT(medusa_event, live, 12, 4);
AT(medusa_event, steps, 16, 4);
AT(medusa_event, reserved, 20, 4);
SIZE(medusa_event, 24);

AT(medusa_module, handle, 0, 8);
AT(medusa_module, is_library, 8, 4);
AT(medusa_module, unloaded, 12, 4);
AT(medusa_module, image_sha256, 16, 32);
AT(medusa_module, image_size, 48, 8);
AT(medusa_module, build_id, 56, 64);
AT(medusa_module, dso_offset, 120, 8);
SIZE(medusa_module, 128);

AT(medusa_block, alloc, 0, 4);
AT(medusa_block, live, 4, 4);
AT(medusa_block, offset, 8, 8);
AT(medusa_block, size, 16, 8);
SIZE(medusa_block, 24);

AT(medusa_call, fn, 0, 8);
AT(medusa_call, nargs, 8, 4);
AT(medusa_call, deref, 12, 4);
AT(medusa_call, arg, 16, 64);
SIZE(medusa_call, 80);

AT(medusa_session_graph, batch, 0, 8);
AT(medusa_session_graph, exec, 8, 8);
AT(medusa_session_graph, label, 16, 128);
SIZE(medusa_session_graph, 144);


IS(MEDUSA_WEIGHT, 1);
IS(MEDUSA_KV, 2);
IS(MEDUSA_INPUT, 3);
IS(MEDUSA_OUTPUT, 4);
IS(MEDUSA_SCRATCH, 5);
IS(MEDUSA_F32, 1);
IS(MEDUSA_F16, 2);
IS(MEDUSA_BF16, 3);
IS(MEDUSA_I32, 4);
IS(MEDUSA_I64, 5);
IS(MEDUSA_U8, 6);
IS(MEDUSA_UNIFORM, 0);
IS(MEDUSA_DISTINCT, 1);
IS(MEDUSA_EXACT_UNASKED, 0);
IS(MEDUSA_EXACT_ON, 1);
IS(MEDUSA_EXACT_REFUSED, 2);
IS(MEDUSA_FAILED, -1);
IS(MEDUSA_FALLBACK, -2);
IS(MEDUSA_MISUSE, -3);
IS(MEDUSA_NONE, 0);
IS(MEDUSA_PROFILE, 1);
IS(MEDUSA_RECORD, 2);
IS(MEDUSA_CHECK, 3);
IS(MEDUSA_RESTORE, 4);
IS(MEDUSA_WEIGHTS_ANY, 0);
IS(MEDUSA_WEIGHTS_OTHER, 1);
IS(MEDUSA_WEIGHTS_COUNT, 2);

/* The functions, declared once more: another type is an error. */
void medusa_mark_phase(const char *);
void medusa_mark_graph(const char *, int64_t);
void medusa_mark_tensor(const struct medusa_tensor *);
void medusa_mark_result(const char *);
void medusa_mark_block(uint64_t, uint64_t, int);
void medusa_mark_note(const char *, const void *, size_t);
void medusa_mark_identity(const char *, const char *);
void medusa_mark_kv_profile(const struct medusa_kv_profile *);
void medusa_mark_elastic(uint64_t, uint64_t);
void medusa_mark_collective(const struct medusa_collective *, uint64_t);
void medusa_mark_collective_end(uint64_t);
void medusa_mark_communicator(int);
int medusa_rank(uint32_t *, uint32_t *);
size_t medusa_alloc_count(void);
int medusa_alloc_get(size_t, struct medusa_alloc *);
size_t medusa_sequence(int64_t *, size_t);
void medusa_exact_get(struct medusa_exact *);
int medusa_exact_place(uint64_t, uint64_t);
size_t medusa_event_count(void);
int medusa_event_get(size_t, struct medusa_event *);
size_t medusa_watch(const uint64_t *, size_t);
const uint32_t *medusa_watched_frees(void);
const uint32_t *medusa_watched_unmaps(void);
const uint32_t *medusa_suspended(void);
void medusa_watch_handles(const uint64_t *, size_t);
const uint32_t *medusa_watched_ends(void);
size_t medusa_module_count(void);
int medusa_module_get(size_t, struct medusa_module *);
int medusa_module_hash(size_t, uint8_t[32]);
void medusa_trigger_begin(void);
void medusa_trigger_end(void);
size_t medusa_trigger_functions(uint64_t *, size_t);
uint64_t medusa_trigger_launches(void);
size_t medusa_graph_count(void);
int medusa_graph_get(size_t, char *, size_t, uint64_t *);
int medusa_tensor_get(const char *, uint64_t *, uint64_t *);
size_t medusa_block_map(struct medusa_block *, size_t);
int medusa_play(const struct medusa_call *, size_t, size_t *);

int medusa_session_open(void);
const char *medusa_session_error(void);
int medusa_session_restoring(void);
int medusa_session_phase(const char *);
int medusa_session_elastic(uint64_t, uint64_t);
int medusa_session_kv_room(uint64_t *);
int medusa_session_identify(const char **, const char **, size_t);
int medusa_session_kv_bytes(uint64_t *);
int medusa_session_workspace(uint64_t *);
int medusa_session_triggers(int64_t *, size_t);
int medusa_session_trigger(int (*)(void *), void *);
int medusa_session_graphs(struct medusa_session_graph *, size_t);
int medusa_session_tensor(const char *, uint64_t *);
int medusa_session_note(const char *, void *, size_t);
int medusa_session_kernels(char *, size_t);
int medusa_session_provide(int (*)(void *, const char *), int (*)(void *, const char *), void *);
int medusa_session_collectives(int (*)(void *, const struct medusa_collective *, uint64_t), void *);
int medusa_session_connect(int (*)(void *), void *);
int medusa_session_alone(void);
int medusa_session_weights(void);
int medusa_session_stand_in(const struct medusa_collective *, uint64_t);
int medusa_session_refuse(const char *);
int medusa_session_usable(size_t, uint64_t *);
int medusa_session_sleep(void);
int medusa_session_wake(int);
int medusa_session_invalidate(const char *);
int medusa_session_ready(int64_t (*)(void *, void *, size_t), void *);
int medusa_session_failed(int);
int medusa_session_close(void);
