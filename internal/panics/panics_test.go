package panics

import (
	"errors"
	"strings"
	"testing"
)

func TestCatch(t *testing.T) {
	var panicked *Error
	err := Catch(func() error {
		var m map[string]int
		m["x"]++
		return nil
	})
	if !errors.As(err, &panicked) || !strings.Contains(panicked.Place, "panics.TestCatch") {
		t.Errorf("a panic ended in %v", err)
	}
	plain := errors.New("plain")
	if err := Catch(func() error { return plain }); err != plain {
		t.Errorf("an error became %v", err)
	}
}
