/* images.S: the PTX of the library's modules, as zero-terminated text that no exported symbol leads to. */
	.section .rodata
	.macro image name, file
	.hidden \name
	.globl \name
	.balign 16
\name:
	.incbin "\file"
	.byte 0
	.endm

	image vblas_image_gemv, "gemv.ptx"
	image vblas_image_tile, "tile.ptx"
	image vblas_image_large, "large.ptx"
	image vblas_image_splitk, "splitk.ptx"

	.section .note.GNU-stack, "", %progbits
