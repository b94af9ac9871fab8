/*
 * procaddr.c: cuGetProcAddress over the generated table.
 *
 * In: a base name, the API version whose ABI the caller was compiled against, the flavour of stream 0. Out: the newest
 * symbol not newer than that version. Fails: with the two query results that the driver documents.
 * cuGetExportTable hands out private tables of the vendor: this driver has none and says so.
 */
#include "core/procs_gen.h"
#include "core/core.h"

#include <string.h>

static CUresult lookup(struct call *c, const char *symbol, void **fn, int version, uint64_t flags,
                       CUdriverProcAddressQueryResult *status)
{
	if (!symbol || !fn || flags > 2)
		return CUDA_ERROR_INVALID_VALUE;
	call_detail(c, "symbol=%s\tversion=%d\tflags=%llu", symbol, version, (unsigned long long)flags);
	bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM || (c->per_thread && flags == 0);
	bool known = false;
	const struct proc_row *best = NULL;
	for (size_t i = 0; i < proc_row_count; i++) {
		const struct proc_row *row = &proc_rows[i];
		if (strcmp(row->base, symbol))
			continue;
		known = true;
		if (row->version > version || (row->per_thread && !per_thread))
			continue;
		best = row; /* rows of one base are ordered by version, the per-thread symbol behind the other */
	}
	*fn = best ? best->fn : NULL;
	if (status)
		*status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
		          : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
		                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(struct call *c, const char *symbol, void **fn, int version, uint64_t flags)
{
	CUresult r = lookup(c, symbol, fn, version, flags, NULL);
	return !r && !*fn ? CUDA_ERROR_NOT_FOUND : r; /* the older ABI has no status to put it in */
}

CUresult sim_cuGetProcAddress_v2(struct call *c, const char *symbol, void **fn, int version, uint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
	return lookup(c, symbol, fn, version, flags, status);
}

CUresult sim_cuGetExportTable(struct call *c, const void **table, const CUuuid *id)
{
	(void)id;
	if (table)
		*table = NULL;
	error_log("%s: there are no private tables (a program that needs one needs the vendor's driver)", c->name);
	return CUDA_ERROR_NOT_FOUND;
}
