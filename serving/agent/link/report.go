package link

import "medusa/serving/agent"

// The paths and headers of an agent's port.
const (
	ReportPath = "/medusa/report"

	HeaderTicket = "X-Medusa-Ticket" // of a request, from the picker
	HeaderHeld   = "X-Medusa-Held"   // of an answer: seconds until its engine was ready
	HeaderProof  = "X-Medusa-Proof"  // of a report and of the request for one
)

// Report is the state of a GPU. Times are in seconds. Those in the past or future count from the time of the
// report.
type Report struct {
	Boot     string    `json:"boot"`    // of the agent's process
	Version  uint64    `json:"version"` // grows with each change
	GPU      string    `json:"gpu"`
	Leaving  bool      `json:"leaving,omitempty"` // the agent ends: send it no more requests
	Models   []Model   `json:"models"`
	Engines  []Engine  `json:"engines"` // those with a process, and failed ones
	Requests []Request `json:"requests"`
	Ended    []Ended   `json:"ended"` // the latest, oldest first
}

// Model is a model that the agent can run. Memory is a share of the GPU's.
type Model struct {
	Name    string  `json:"name"`
	Memory  float64 `json:"memory"`
	Slots   int     `json:"slots"`
	Keep    bool    `json:"keep,omitempty"`
	Start   float64 `json:"start"` // estimates, measured if there are measurements
	Wake    float64 `json:"wake"`
	Service float64 `json:"service"`
}

// Engine is the engine of a model on this GPU.
type Engine struct {
	Model  string      `json:"model"`
	State  agent.State `json:"state"`
	Since  float64     `json:"since"`  // seconds in the state
	Wanted bool        `json:"wanted"` // it is awake, or becomes so
	Idle   float64     `json:"idle"`   // seconds since its last request began or ended
	Memory float64     `json:"memory"` // share that it has now
	Delay  float64     `json:"delay"`  // seconds from its state to awake
	Retry  float64     `json:"retry,omitempty"`
	Error  string      `json:"error,omitempty"`
}

// Request is a request that the agent has, and has not answered yet.
type Request struct {
	ID    string  `json:"id"`
	Model string  `json:"model"`
	Age   float64 `json:"age"`
	Held  bool    `json:"held,omitempty"` // it has no place in an engine yet
}

// Ended is a request that the agent had.
type Ended struct {
	ID      string  `json:"id"`
	Service float64 `json:"service"` // running time without the engine's start; 0: it was not answered
}
