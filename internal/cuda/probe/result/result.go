// Package result has the result of a probe of the driver, as values and JSON. It imports no driver binding: the probing process
// writes the result, and medusa reads it.
package result

// State is the outcome of a probe. It distinguishes a driver that lacks a feature from one that fails for another reason (no
// memory, a sticky error, a locked-down container).
type State string

// The states.
const (
	Available    State = "available"
	NotSupported State = "not supported"
	Inconclusive State = "inconclusive"
)

// Need says which commands need a feature.
type Need string

// The needs.
const (
	Restore   Need = "restore"        // no artifact can be restored without it
	Record    Need = "materialize"    // no artifact can be made without it
	Artifacts Need = "some artifacts" // only artifacts that use the feature need it
)

// Feature is one probed feature.
type Feature struct {
	Name   string `json:"name"`
	Since  int    `json:"since"` // the CUDA version from which it is expected, as a number of cuDriverGetVersion
	Need   Need   `json:"need"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"` // why it is not available
}

// Device is a device of the driver. Sizes are in bytes.
type Device struct {
	Ordinal           int    `json:"ordinal"`
	Name              string `json:"name"`
	ComputeCapability string `json:"compute_capability"`
	SMCount           int    `json:"sm_count"`
	Memory            uint64 `json:"memory"`
	Free              uint64 `json:"free"`         // of device 0, with an empty context; 0: unknown
	Total             uint64 `json:"total_usable"` // as reported by cuMemGetInfo; 0: unknown
}

// Result is the complete result of a probe.
type Result struct {
	Reachable  bool      `json:"reachable"`       // the driver could be opened and initialized
	Error      string    `json:"error,omitempty"` // why not
	Driver     int       `json:"driver"`          // cuDriverGetVersion's number
	Devices    []Device  `json:"devices"`
	Features   []Feature `json:"features"`   // of device 0
	Interposer bool      `json:"interposer"` // the process runs with a working interposer
}
