/* images.S: the PTX of the products, as zero-terminated text that no exported symbol leads to. */
	.section .rodata
	.macro image name, file
	.hidden \name
	.globl \name
	.balign 16
\name:
	.incbin "\file"
	.byte 0
	.endm

	image gemm_image_tile, "tile.ptx"
	image gemm_image_splitk, "splitk.ptx"

	.section .note.GNU-stack, "", %progbits
