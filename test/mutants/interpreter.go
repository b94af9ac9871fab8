package main

// interpreter has rows for the interpreter, which executes kernels on the simulated GPU.
var interpreter = []mutant{
	instruction("lines of the source", never, "parser"),
	instruction("warps in any order", skip, "order"),
	instruction("launches that are worth a thread", always, "spread"),
	instruction("kernels that stay on one processor", never, "spread"),
	instruction("the earliest fault", never, "spread"),
	instruction("copies of a group that was waited for", always, "triton"),
	instruction("copies of a group that was waited for", never, "triton"),
	instruction("copies of a group that was waited for", replace("+ pending", "+ 0 * pending"), "triton"),
	instruction("a copy has the bytes of its issue", never, "triton"),
	instruction("transposed matrices", replace("trans ? &row[8 * k + j][i]", "0 ? &row[8 * k + j][i]"), "triton"),
	instruction("matrices to memory", always, "triton"),
	instruction("lanes of a matrix", never, "triton"),
	instruction("operands are rounded to TF32", replace("0xffffe000", "0xffffffff"), "triton"),
	instruction("products of floats", skip, "triton"),
	instruction("sums of integers that saturate", replace("in->aux ?", "0 ?"), "triton"),
	instruction("8 bits, 4 of them exponent", replace("- 10", "- 9"), "triton"),
	instruction("rounding to 8 bits", replace("nearbyint", "trunc"), "float8"),
	instruction("8 bits have a largest number", never, "float8"),
}

func instruction(name string, c change, group string) mutant {
	return mutant{name, c, "./simgpu/test/ptx_" + group + "_test.c", "test_" + group}
}
