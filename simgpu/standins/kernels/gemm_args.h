/*
 * gemm_args.h: the numbers of a matrix product, by value, for the host and for the kernels. Matrices are stored by columns, as in the
 * library. Strides are in elements, from one matrix of the batch to the next.
 */
#ifndef MEDUSA_GEMM_ARGS_H
#define MEDUSA_GEMM_ARGS_H

/* cudaDataType */
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, R_8F_E4M3 = 28, R_8F_E5M2 = 29 };
enum { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_GELU };

struct gemm_args {
	long long stride_a, stride_b, stride_c, stride_d, stride_bias;
	double alpha, beta;
	int m, n, k, lda, ldb, ldc, ldd;
	int transposed_a, transposed_b;
	int arrays; /* a, b, c and d point to arrays of addresses, one a matrix of the batch */
	int a_type, b_type, c_type, d_type, bias_type, activation;
};

#endif
