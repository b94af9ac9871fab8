/*
 * process.h: the other process of a case. It is this program again. It makes one call for each request, on its own context, and answers
 * with the result. If the machine has two devices, it has the second.
 */
#ifndef CONFORMANCE_PROCESS_H
#define CONFORMANCE_PROCESS_H

#include "conformance.h"

#include <stddef.h>

#define PAGE ((size_t)2 << 20)

enum peer_call { OPEN, CLOSE, READ, WRITE, ADD, RANGE, EVENT_OPEN, EVENT_QUERY, EVENT_SYNC, EVENT_WAIT, EVENT_RECORD, EVENT_TIME, EVENT_DESTROY, IMPORT,
	/* a multicast object of that descriptor: takes part with memory of its own at ptr; maps it; instructions on a mapping */
	TEAM_IMPORT, TEAM_BIND, TEAM_MAP, STORE_ALL, ADD_ALL
};

struct request {
	enum peer_call call;
	CUipcMemHandle memory;
	CUipcEventHandle event_handle;
	unsigned flags, value;
	int file;
	size_t size;
	CUdeviceptr ptr;
	CUevent event;
};

struct reply {
	CUresult result;
	CUdeviceptr ptr;
	size_t size;
	unsigned value;
	CUevent event;
};

void peer_start(void);
void peer_end(void);
/* The other process's result of one call; the rest of its answer is in answer. */
CUresult ask(struct request q);
#define ASK(...) ask((struct request){__VA_ARGS__})
extern struct reply answer;
/* The two halves of ask, and whether the second would wait. */
bool peer_tell(struct request q);
CUresult peer_answer(void);
bool peer_silent(int ms);

/* Calls of either process. */
CUresult set(CUdeviceptr p, unsigned word);
CUresult map(CUmemGenericAllocationHandle h, size_t size, CUdeviceptr *p); /* memory, at an address of its own */
extern const CUmemAllocationProp exportable;

#endif
