/* stack.c: see stack.h. */
#include "stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 12, SHOWN = 6 };

void stack_text(char *out, size_t cap)
{
	void *frames[FRAMES];
	Dl_info own = {0}, info;
	int n = backtrace(frames, FRAMES), shown = 0;
	size_t len = 0;
	out[0] = 0;
	dladdr((void *)(uintptr_t)stack_text, &own);
	for (int i = 0; i < n && shown < SHOWN && len < cap; i++) {
		const char *name;
		int wrote;
		if (!dladdr(frames[i], &info) || !info.dli_fname || info.dli_fbase == own.dli_fbase)
			continue;
		name = strrchr(info.dli_fname, '/');
		wrote = snprintf(out + len, cap - len, "%s%s+0x%zx", shown ? " " : "", name ? name + 1 : info.dli_fname,
				 (size_t)((const char *)frames[i] - (const char *)info.dli_fbase));
		if (wrote < 0 || (size_t)wrote >= cap - len) {
			out[len] = 0;
			return;
		}
		len += (size_t)wrote;
		shown++;
	}
}
