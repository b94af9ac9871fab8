package panics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCatch(t *testing.T) {
	var panicked *Error
	err := Catch(func() error {
		var none []int
		return fmt.Errorf("%d", none[len(none)])
	})
	if !errors.As(err, &panicked) || !strings.Contains(panicked.Place, "panics.TestCatch") {
		t.Errorf("a panic ended in %v", err)
	}
	plain := errors.New("plain")
	if err := Catch(func() error { return plain }); err != plain {
		t.Errorf("an error became %v", err)
	}
}
