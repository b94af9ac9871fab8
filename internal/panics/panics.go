// Package panics turns panics into errors: Medusa's code runs inside of engines, and its panic must not end an engine.
//
// In: a function. Out: its error, or a *Error with the place of its panic. A panic of another goroutine is not caught: one that
// could panic calls Catch itself.
package panics

import (
	"fmt"
	"runtime"
	"strings"
)

// Error is a panic, caught before it reaches the engine.
type Error struct {
	Value any
	Place string // function and line
}

func (e *Error) Error() string {
	return fmt.Sprintf("panic in %s: %v", e.Place, e.Value)
}

// Catch returns f's error, or a panic of f as a *Error.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Caught(v)
		}
	}()
	return f()
}

// Caught is a panic that a deferred function has recovered from. That function calls it.
func Caught(value any) *Error { return &Error{value, place()} }

// place finds the function that panicked: the one that called the runtime's first function below recover.
func place() string {
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
