/* image.S: the PTX of the communicator's kernel, as zero-terminated text. */
	.section .rodata
	.hidden nccl_image
	.globl nccl_image
	.balign 16
nccl_image:
	.incbin "collective.ptx"
	.byte 0

	.section .note.GNU-stack, "", %progbits
