package testenv

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRootHasTheModule(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(t), "Makefile")); err != nil {
		t.Error(err)
	}
}

func TestWithout(t *testing.T) {
	got := without([]string{"MEDUSA_RUN=record", "MEDUSAX=1", "LD_PRELOAD=x", "LD_PRELOADED=y", "HOME=/"}, "MEDUSA_", "LD_PRELOAD")
	if want := []string{"MEDUSAX=1", "LD_PRELOADED=y", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
