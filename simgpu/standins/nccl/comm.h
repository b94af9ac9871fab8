/*
 * comm.h: the data that the host and the kernel of the stand-in for NCCL share. Read by clang for the device as well.
 */
#ifndef STANDIN_NCCL_COMM_H
#define STANDIN_NCCL_COMM_H

#define NCCL_RANKS 8
#define NCCL_THREADS 128
#define NCCL_PIECE 65536
#define NCCL_LETTER 16384 /* bytes */
#define NCCL_PAIRS 16 /* sends and receives of a group */
#define NCCL_MAGIC 0x6d6d6f63u

enum nccl_call { NCCL_EXCHANGE, NCCL_ALL_REDUCE, NCCL_ALL_GATHER, NCCL_REDUCE_SCATTER, NCCL_BROADCAST, NCCL_KINDS };
/* The numbers of ncclRedOp_t and ncclDataType_t. */
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };
enum { NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64, NCCL_F16, NCCL_F32, NCCL_F64, NCCL_BF16, NCCL_TYPES };

/* Device memory that every rank has mapped. */
struct nccl_block {
	unsigned posted, done, tag, reserved; /* steps of this rank */
	char data[NCCL_PIECE];
};

/* From one rank to the one that has it. The sender waits until its letter was taken. */
struct nccl_mail {
	unsigned posted, taken, tag, reserved;
	char data[NCCL_LETTER];
};

/* A send or a receive. */
struct nccl_pair { unsigned long long buffer, bytes; int peer, receives; };
/* All that one kernel makes, at once: a ring of ranks that first send and then receive would wait for ever. */
struct nccl_pairs { int count, reserved; struct nccl_pair list[NCCL_PAIRS]; };

/* Device memory of one rank, to which each captured call points. */
struct nccl_device {
	unsigned magic, step;
	int rank, ranks;
	unsigned long long self, deadline; /* its address; in ns */
	unsigned long long peers[NCCL_RANKS]; /* nccl_block of each rank, at this process's addresses */
	struct nccl_block block;
	struct nccl_mail mail[NCCL_RANKS]; /* by sender */
};

#endif
