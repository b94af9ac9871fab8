package agent

import (
	"context"
	"fmt"
)

// Engine is one life of an engine: it starts once and ends once.
type Engine interface {
	// Start returns when the engine answers requests. If it fails, or if ctx ends before, no process of the engine is left.
	Start(ctx context.Context) error
	// URL is where a started engine answers.
	URL() string
	// Key is the API key that it wants, or "".
	Key() string
	// Healthy returns an error if the engine does not answer.
	Healthy(ctx context.Context) error
	// Sleep gives device memory back: at level 1 the weights stay in host memory, at level 2 they do not.
	Sleep(ctx context.Context, level int) error
	// Wake undoes Sleep.
	Wake(ctx context.Context) error
	// HostMemory is what the engine holds of the host's memory in bytes, or 0 if that is unknown.
	HostMemory() int64
	// DeviceMemory is the share of its GPU's memory that the engine has, its context included, or 0 if that is unknown.
	DeviceMemory(ctx context.Context) float64
	// Stop ends the engine. When it returns, no process of it is left.
	Stop()
	// Ended is closed when the engine has ended. Err then says why.
	Ended() <-chan struct{}
	Err() error
}

// State is that of a model on a GPU.
type State string

// The states. An engine has a process in all but Cold and Failed.
const (
	Cold     State = "cold"
	Starting State = "starting"
	Awake    State = "awake"
	Dozing   State = "falling_asleep"
	Asleep1  State = "asleep_1"
	Asleep2  State = "asleep_2"
	Waking   State = "waking"
	Evicted  State = "evicted" // on its way out, to make room
	Failed   State = "failed"
)

// States lists them.
func States() []State {
	return []State{Cold, Starting, Awake, Dozing, Asleep1, Asleep2, Waking, Evicted, Failed}
}

// EngineError is the failure of an engine that a request needed.
type EngineError struct {
	Model string
	GPU   int
	Cause error
}

func (e *EngineError) Error() string {
	return fmt.Sprintf("run engine of %s on GPU %d: %v", e.Model, e.GPU, e.Cause)
}

// Unwrap returns the cause.
func (e *EngineError) Unwrap() error { return e.Cause }
