/* contract.c: no code; the compiler checks the sizes and offsets of the headers, which other languages use (internal/contract). */
#include "contract_gen.c"
