package restore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"medusa/internal/contract"
)

// If a native start is forbidden, every call says with which code the process is to end. That is no fallback: an engine that looks for one
// would go on.
func TestExit(t *testing.T) {
	var said bytes.Buffer
	s := &Session{env: environment{Start: contract.Start{Strict: true}, run: Restore}, journal: journal{warn: &said, timings: make(timings)}}
	graphs := func() error {
		_, err := s.Graphs()
		return err
	}
	if err := s.Refuse(errors.New("these graphs")); err == nil || s.Exit() == nil {
		t.Fatalf("the first call: %v", err)
	}
	for name, call := range map[string]func() error{
		"refuse": func() error { return s.Refuse(errors.New("other graphs")) }, "trigger": func() error { return s.Trigger(func() error { return nil }) },
		"graphs": graphs, "ready": func() error { return s.Ready(nil) }, "failed": func() error { return s.Failed(errors.New("launch")) },
		"identify": func() error { return s.Identify(nil) },
	} {
		var exit *Exit
		var f *Fallback
		if err := call(); !errors.As(err, &exit) || exit.Code != 3 || errors.As(err, &f) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Restoring() || s.Close() != nil || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("restoring %v, said %q", s.Restoring(), said.String())
	}
}
