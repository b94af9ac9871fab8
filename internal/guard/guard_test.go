package guard

import (
	"errors"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var panicked *PanicError
	err := Run(func() error {
		var m map[string]int
		m["x"]++
		return nil
	})
	if !errors.As(err, &panicked) || !strings.Contains(panicked.Place, "guard.TestRun") {
		t.Errorf("a panic ended in %v", err)
	}
	plain := errors.New("plain")
	if err := Run(func() error { return plain }); err != plain {
		t.Errorf("an error became %v", err)
	}
}
