package agent

import (
	"crypto/rand"
	"fmt"
)

// Failure is why an engine has failed, for everybody. The cause may repeat what a client has asked, so only the log has it.
type Failure struct {
	ID    string
	cause error
}

func (f *Failure) Error() string { return "failure " + f.ID + " (the log has its cause)" }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

// Failed makes the error of a request whose engine has failed, and writes the cause to the log.
func (a *Agent) Failed(model string, gpu int, cause error) *EngineError {
	f := &Failure{rand.Text()[:10], cause}
	a.config.Warn("%v: %v", &EngineError{model, gpu, fmt.Errorf("failure %s", f.ID)}, cause)
	return &EngineError{model, gpu, f}
}
