package restore

import "fmt"

// Code says why a restore was given up, for programs.
type Code string

// The reasons to start natively.
const (
	ArtifactMissing  Code = "artifact_missing"
	ArtifactCorrupt  Code = "artifact_corrupt"
	Format           Code = "format" // the artifact's format is none that this code reads
	Incompatible     Code = "incompatible"
	Memory           Code = "memory"
	SequenceMismatch Code = "sequence_mismatch"
	KernelNotFound   Code = "kernel_not_found"
	DriverError      Code = "driver_error"
	InterposerAbsent Code = "interposer_absent"
	CheckFailed      Code = "check_failed"
	Engine           Code = "engine"
	Unsupported      Code = "unsupported"
	Internal         Code = "internal" // a panic of Medusa's own
)

// exit returns the process's exit code under MEDUSA_STRICT (design: 3 incompatible artifact, 5 corrupt artifact).
func (c Code) exit() int {
	switch c {
	case Format, Incompatible, Memory, Unsupported:
		return 3
	case ArtifactCorrupt:
		return 5
	}
	return 1
}

// Fallback says why the engine has to start natively. Nothing of the restore is left behind.
type Fallback struct {
	Code   Code
	Reason error
}

func (f *Fallback) Error() string { return fmt.Sprintf("%s: %v", f.Code, f.Reason) }

// Unwrap returns the reason.
func (f *Fallback) Unwrap() error { return f.Reason }
