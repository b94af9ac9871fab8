package cuda

// resultName gives a result's enumerator and meaning. Stand-in for the generated table.
func resultName(r Result) (name, text string) {
	switch r {
	case Success:
		return "CUDA_SUCCESS", ""
	case InvalidValue:
		return "CUDA_ERROR_INVALID_VALUE", "invalid argument"
	case OutOfMemory:
		return "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"
	case IllegalAddress:
		return "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"
	case NotSupported:
		return "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"
	}
	return "", ""
}
