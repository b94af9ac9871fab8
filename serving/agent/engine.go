package agent

import (
	"context"
	"fmt"
)

// Engine is one life of an engine: it starts once and ends once.
type Engine interface {
	// Start returns when the engine answers requests. If it fails, or if ctx ends before, no process of the engine is left.
	Start(ctx context.Context) error
	// URL returns the address of a started engine.
	URL() string
	// Key returns the API key that the engine wants, or "".
	Key() string
	// Healthy returns an error if the engine does not answer.
	Healthy(ctx context.Context) error
	// Sleep gives device memory back: at level 1 the weights stay in host memory, at level 2 they do not.
	Sleep(ctx context.Context, level int) error
	// Wake undoes Sleep.
	Wake(ctx context.Context) error
	// HostMemory returns the host memory of the engine in bytes, or 0 if that is unknown.
	HostMemory() int64
	// DeviceMemory returns the engine's share of its GPU's memory, its context included, or 0 if that is unknown.
	DeviceMemory(ctx context.Context) float64
	// Stop ends the engine. When it returns, no process of it is left.
	Stop()
	// Ended is closed when the engine has ended. Err then returns the reason.
	Ended() <-chan struct{}
	Err() error
}

// State is the state of a model on a GPU.
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

// States lists all states.
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
