package memory

import "medusa/internal/cuda"

// Kept is a piece of the engine's memory that a restore or a check writes over.
type Kept struct {
	addr uint64
	data []byte
}

// SpoiltError says that the engine's memory or kernels are no longer as the engine left them: no start can go on in this
// process.
type SpoiltError struct{ Cause error }

func (e *SpoiltError) Error() string {
	return "put back what the engine left: " + e.Cause.Error()
}

func (e *SpoiltError) Unwrap() error { return e.Cause }

// Keep reads a piece.
func Keep(addr, size uint64) (Kept, error) {
	k := Kept{addr, make([]byte, size)}
	return k, cuda.CopyToHost(k.data, cuda.DevicePtr(addr))
}

// PutBack writes the kept bytes back.
func PutBack(kept []Kept) error {
	for _, p := range kept {
		if err := cuda.CopyToDevice(cuda.DevicePtr(p.addr), p.data); err != nil {
			return &SpoiltError{err}
		}
	}
	return nil
}
