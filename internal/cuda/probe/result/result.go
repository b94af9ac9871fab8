// Package result is what a probe of the driver says, as values and JSON. It imports no driver binding: the probing process
// writes it, medusa reads it.
package result

// State is what a probe found. A probe that cannot tell says so: a driver that fails for another reason (no memory, a
// sticky error, a locked-down container) must not be taken for one that lacks a feature.
type State string

// The states.
const (
	Available    State = "available"
	NotSupported State = "not supported"
	Inconclusive State = "inconclusive"
)

// Need says what lacks a feature can do without it.
type Need string

// The needs.
const (
	Restore   Need = "restore"        // without it nothing can be restored
	Record    Need = "materialize"    // without it nothing can be materialized
	Artifacts Need = "some artifacts" // only artifacts that use it need it
)

// Feature is one probed feature.
type Feature struct {
	Name   string `json:"name"`
	Since  int    `json:"since"` // the CUDA version that it is expected from, as cuDriverGetVersion counts
	Need   Need   `json:"need"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"` // why it is not available
}

// Device is a device that the driver shows. Sizes are in bytes.
type Device struct {
	Ordinal           int    `json:"ordinal"`
	Name              string `json:"name"`
	ComputeCapability string `json:"compute_capability"`
	SMCount           int    `json:"sm_count"`
	Memory            uint64 `json:"memory"`
	Free              uint64 `json:"free"`         // of device 0, with an empty context; 0: not known
	Total             uint64 `json:"total_usable"` // as cuMemGetInfo says it; 0: not known
}

// Result is everything a probe found.
type Result struct {
	Reachable  bool      `json:"reachable"`       // the driver could be opened and initialised
	Error      string    `json:"error,omitempty"` // why not
	Driver     int       `json:"driver"`          // cuDriverGetVersion's number
	Devices    []Device  `json:"devices"`
	Features   []Feature `json:"features"`   // of device 0
	Interposer bool      `json:"interposer"` // the process runs with a working interposer
}
