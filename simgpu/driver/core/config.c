/*
 * config.c: the environment (see README.md) and the two random sequences drawn from the seed.
 *
 * In: SIMGPU_* variables, read once. Out: struct config. Fails: a malformed value is reported in the error log and
 * replaced by the default.
 */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct config config;
static bool ready;
static uint64_t address_state, order_state;

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t parse_bytes(const char *name, const char *text, uint64_t fallback)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (errno || end == text || (*end && !shift) || (shift && end[1]) || !n || n > UINT64_MAX >> 16) {
		fprintf(stderr, "simgpu: %s=%s is not a number of bytes with suffix K, M or G: using the default\n", name, text);
		return fallback;
	}
	return n << shift;
}

/* The number of the device whose UUID begins with the text, as CUDA takes it: GPU- and digits, up to a comma. Otherwise -1. */
static long named_device(const char *text, char **end)
{
	*end = (char *)text + strcspn(text, ",");
	long found = -1;
	for (int i = 0; i < config.devices; i++) {
		char name[64];
		unsigned char bytes[16] = {0};
		device_uuid(i, (char *)bytes);
		char *at = name + sprintf(name, "GPU-");
		for (size_t b = 0; b < sizeof(bytes); b++)
			at += sprintf(at, b == 4 || b == 6 || b == 8 || b == 10 ? "-%02x" : "%02x", bytes[b]);
		if (!strncmp(text, name, (size_t)(*end - text)))
			found = found < 0 ? i : config.devices; /* of two, none is meant */
	}
	return found;
}

/* The variable is CUDA's: the devices that a process sees, in its order. Without it, and with one device, a process sees all. */
static void read_visible(const char *text)
{
	for (const char *at = text; config.devices > 1 && at && *at;) {
		char *end;
		long n = strncmp(at, "GPU-", 4) ? strtol(at, &end, 10) : named_device(at, &end);
		if (end == at || (*end && *end != ',') || n < 0 || n >= config.devices || config.seen == MOST_DEVICES) {
			fprintf(stderr, "simgpu: CUDA_VISIBLE_DEVICES=%s names no devices of %d: using all\n", text, config.devices);
			config.seen = 0;
			break;
		}
		config.visible[config.seen++] = (int)n;
		at = *end ? end + 1 : end;
	}
	for (int i = 0, none = !config.seen; none && i < config.devices; i++)
		config.visible[config.seen++] = i;
}

static const char *env(const char *name)
{
	const char *v = getenv(name);
	return v && *v ? v : NULL;
}

/* A value that is needed later. Programs may write over their environment: setproctitle puts the title there. */
static const char *kept(const char *name)
{
	const char *v = env(name);
	return v ? strdup(v) : NULL;
}

const struct config *config_get(void)
{
	if (ready)
		return &config;
	ready = true;
	const char *v = env("SIMGPU_SEED");
	if (v)
		config.seed = strtoull(v, NULL, 0);
	else if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed))
		config.seed = (uintptr_t)&config ^ now_us();
	config.memory = 8 * 1024 * MIB;
	if ((v = env("SIMGPU_MEMORY")))
		config.memory = parse_bytes("SIMGPU_MEMORY", v, config.memory);
	config.compute = true;
	if ((v = env("SIMGPU_COMPUTE"))) {
		config.compute = strcmp(v, "off") != 0;
		if (config.compute && strcmp(v, "on") != 0)
			fprintf(stderr, "simgpu: SIMGPU_COMPUTE=%s is neither on nor off: using on\n", v);
	}
	if ((v = env("SIMGPU_MACHINE_CODE"))) {
		config.machine_code = strcmp(v, "no-op") == 0;
		if (!config.machine_code && strcmp(v, "refuse") != 0)
			fprintf(stderr, "simgpu: SIMGPU_MACHINE_CODE=%s is neither refuse nor no-op: using refuse\n", v);
	}
	config.cc_major = 9;
	if ((v = env("SIMGPU_COMPUTE_CAPABILITY")) && sscanf(v, "%d.%d", &config.cc_major, &config.cc_minor) != 2) {
		fprintf(stderr, "simgpu: SIMGPU_COMPUTE_CAPABILITY=%s is not major.minor: using 9.0\n", v);
		config.cc_major = 9;
		config.cc_minor = 0;
	}
	config.version = CUDA_VERSION;
	if ((v = env("SIMGPU_DRIVER_VERSION")) && sscanf(v, "%d", &config.version) != 1)
		fprintf(stderr, "simgpu: SIMGPU_DRIVER_VERSION=%s is not a number: using %d\n", v, CUDA_VERSION);
	if ((v = env("SIMGPU_COPY_RATE")))
		config.copy_rate = parse_bytes("SIMGPU_COPY_RATE", v, 0);
	config.hint_limit = UINT64_MAX;
	if ((v = env("SIMGPU_VMM_HINTS")) && *v >= '0' && *v <= '9') {
		config.hint_limit = parse_bytes("SIMGPU_VMM_HINTS", v, UINT64_MAX);
	} else if (v) {
		config.vmm_hints = !strcmp(v, "refuse") ? HINTS_REFUSE : !strcmp(v, "fail") ? HINTS_FAIL : HINTS_HONOUR;
		if (config.vmm_hints == HINTS_HONOUR && strcmp(v, "honour") != 0)
			fprintf(stderr, "simgpu: SIMGPU_VMM_HINTS=%s is none of honour, refuse, fail and a number of bytes: using honour\n", v);
	}
	if ((v = env("SIMGPU_NODE_KERNELS"))) {
		config.node_kernels = !strcmp(v, "function") ? KERNELS_FUNCTION : !strcmp(v, "launched") ? KERNELS_LAUNCHED : KERNELS_BOTH;
		if (config.node_kernels == KERNELS_BOTH && strcmp(v, "both") != 0)
			fprintf(stderr, "simgpu: SIMGPU_NODE_KERNELS=%s is none of launched, function and both: using both\n", v);
	}
	if ((v = env("SIMGPU_GRAPH_ORDER"))) {
		config.graph_order = !strcmp(v, "reversed") ? ORDER_REVERSED : !strcmp(v, "shuffled") ? ORDER_SHUFFLED : ORDER_CREATED;
		if (config.graph_order == ORDER_CREATED && strcmp(v, "created") != 0)
			fprintf(stderr, "simgpu: SIMGPU_GRAPH_ORDER=%s is none of created, reversed and shuffled: using created\n", v);
	}
	if ((v = env("SIMGPU_NEIGHBOUR")))
		config.neighbour = parse_bytes("SIMGPU_NEIGHBOUR", v, 0);
	config.shared = kept("SIMGPU_SHARED");
	config.devices = 1;
	if ((v = env("SIMGPU_DEVICES"))) {
		config.devices = (int)strtol(v, NULL, 10);
		if (config.devices < 1 || config.devices > MOST_DEVICES) {
			fprintf(stderr, "simgpu: SIMGPU_DEVICES=%s is not 1 to %d: using 1\n", v, MOST_DEVICES);
			config.devices = 1;
		}
	}
	read_visible(env("CUDA_VISIBLE_DEVICES"));
	if ((v = env("SIMGPU_OVERHEAD"))) {
		config.overhead = strcmp(v, "charged") == 0;
		if (!config.overhead && strcmp(v, "off") != 0)
			fprintf(stderr, "simgpu: SIMGPU_OVERHEAD=%s is neither off nor charged: using off\n", v);
	}
	config.multicast = (v = env("SIMGPU_MULTICAST")) && strcmp(v, "1") == 0;
	config.leaks = (v = env("SIMGPU_LEAKS")) && strcmp(v, "1") == 0;
	config.call_log = kept("SIMGPU_CALL_LOG");
	config.truth = kept("SIMGPU_TRUTH");
	config.log = kept("SIMGPU_LOG");
	config.processes = kept("SIMGPU_PROCESSES");
	address_state = config.seed;
	order_state = ~config.seed;
	return &config;
}

uint64_t random_address(void)
{
	config_get();
	return splitmix(&address_state);
}

/* As with a driver's addresses, the lower half is seldom a number that programs count with: four bytes of such a number beside
 * half of an address that a stack still holds would pass for an address. Here it never is, nor a common float. */
uint64_t random_base(uint64_t low, uint64_t spread, uint64_t step)
{
	const uint64_t span = (uint64_t)1 << 32, lower = 0x50000000, room = 0x20000000;
	uint64_t addr = (low + random_address() % spread) / span * span + lower + random_address() % room;
	return (addr + step - 1) / step * step;
}

uint64_t random_of(uint64_t number)
{
	uint64_t state = config_get()->seed ^ number * 0x9e3779b97f4a7c15u;
	return splitmix(&state);
}

uint64_t random_order(void)
{
	config_get();
	return splitmix(&order_state);
}
