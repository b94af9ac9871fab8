package restore

import (
	"fmt"
	"runtime"
	"strings"
)

// PanicError is a panic, caught before it reaches the engine.
type PanicError struct {
	Value any
	Place string // function and line
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in %s: %v", e.Place, e.Value)
}

// Guard runs f as one call of the engine's: a panic inside becomes the reason to start natively, or, in a start that restores
// nothing, an error. The methods that make driver calls go through it, and so does every call of the C ABI.
func (s *Session) Guard(f func() error) error {
	err := guarded(f)
	if p, ok := err.(*PanicError); ok { // not one that f has dealt with
		return s.panicked(p)
	}
	return err
}

// guarded returns a panic of f as a *PanicError.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, panicPlace()}
		}
	}()
	return f()
}

// panicked: before ready the engine starts natively; after it, it does without restored graphs.
func (s *Session) panicked(p *PanicError) error {
	if s.env.run != Restore {
		s.say("%v", p)
		return p
	}
	if s.restored != nil && s.serving {
		s.Invalidate(p)
		return s.fall(&Fallback{Internal, p})
	}
	return s.giveUp(Internal, p)
}

// panicPlace finds the function that panicked: the one that called the runtime's first function below recover.
func panicPlace() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for panicking := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
		if panicking = panicking || inRuntime; !more {
			return "an unknown function"
		}
	}
}
