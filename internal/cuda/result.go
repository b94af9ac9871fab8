package cuda

import (
	"errors"
	"fmt"
)

// Result is a CUresult other than success, as an error. See the CUresult enumeration of the driver API.
type Result uint32

// Results that callers in this module distinguish.
const (
	Success        Result = 0
	InvalidValue   Result = 1
	OutOfMemory    Result = 2
	NotInitialized Result = 3
	invalidImage   Result = 200
	InvalidContext Result = 201
	InvalidHandle  Result = 400
	NotFound       Result = 500
	IllegalAddress Result = 700
)

// Error returns the enumerator's name and its meaning.
func (r Result) Error() string {
	name, text := resultName(r)
	if name == "" {
		return fmt.Sprintf("CUresult %d", uint32(r))
	}
	if text == "" {
		return name
	}
	return name + ": " + text
}

// Sticky reports whether err has a Result after which the context, and thus the process, can do no further GPU work (cuda.h: "the
// process must be terminated and relaunched"). Only a new process helps then.
func Sticky(err error) bool {
	var r Result
	if !errors.As(err, &r) {
		return false
	}
	switch r {
	case 214, // ECC_UNCORRECTABLE
		220, // NVLINK_UNCORRECTABLE
		226, // CONTAINED
		700, // ILLEGAL_ADDRESS
		702, // LAUNCH_TIMEOUT
		710, // ASSERT
		714, // HARDWARE_STACK_ERROR
		715, // ILLEGAL_INSTRUCTION
		716, // MISALIGNED_ADDRESS
		717, // INVALID_ADDRESS_SPACE
		718, // INVALID_PC
		719, // LAUNCH_FAILED
		721, // TENSOR_MEMORY_LEAK
		911: // EXTERNAL_DEVICE
		return true
	}
	return false
}
