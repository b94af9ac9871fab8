package dispatch

import "fmt"

// Model is the description of a function's model in a server's log. Memory is a share of a GPU's memory.
type Model struct {
	Name     string  `json:"name"`
	Memory   float64 `json:"memory"`
	Slots    int     `json:"slots"`           // requests at a time
	Sleep    int     `json:"sleep,omitempty"` // level; 0: it is stopped to make room
	HostGB   float64 `json:"host_gb,omitempty"`
	Keep     bool    `json:"keep,omitempty"`     // its last engine does not make room
	Restored bool    `json:"restored,omitempty"` // it has an artifact
	Leaving  bool    `json:"leaving,omitempty"`  // the configuration lacks it
	Start    float64 `json:"start"`              // seconds: estimates, used until they are measured
	Wake     float64 `json:"wake"`
	Service  float64 `json:"service"`
}

// CheckKept demands that each model has room on some GPU, on whichever GPUs the engines of the other kept models lie. A model has no room
// on any GPU only if they take more than the rest that it leaves of each GPU.
func CheckKept(models []Model, gpus int) error {
	kept := 0.0
	for _, m := range models {
		if m.Keep {
			kept += m.Memory
		}
	}
	for _, m := range models {
		others := kept
		if m.Keep {
			others -= m.Memory
		}
		// mutant: room beside kept models
		if others > float64(gpus)*(1-m.Memory)+1e-9 {
			return fmt.Errorf("keep models: %g of %d GPUs may leave no room for %s", others, gpus, m.Name)
		}
	}
	return nil
}
