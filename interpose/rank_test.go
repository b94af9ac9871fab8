package interpose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// Each worker writes its own trace, named by its rank. Two workers of the same rank never share one, and the second is noted.
func TestTraceOfEachRank(t *testing.T) {
	program := build(t, "build/test/phases")
	torchrun := []string{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2"}
	for _, tt := range []struct {
		name string
		env  []string
		file string // empty: none
	}{
		{"alone", nil, "trace"},
		{"one of one", []string{"MEDUSA_RANK=0", "MEDUSA_WORLD_SIZE=1"}, "trace"},
		{"second of two", []string{"MEDUSA_RANK=1", "MEDUSA_WORLD_SIZE=2"}, "trace.1"},
		{"tenth of many", []string{"MEDUSA_RANK=10", "MEDUSA_WORLD_SIZE=64"}, "trace.10"},
		{"torchrun", torchrun, "trace.1"},
		{"Medusa's own come first", append(torchrun, "MEDUSA_RANK=2", "MEDUSA_WORLD_SIZE=3"), "trace.2"},
		{"torchrun on several machines", append(torchrun, "WORLD_SIZE=4", "RANK=3"), "trace"},
		{"RANK alone", []string{"RANK=1"}, "trace"},
		{"LOCAL_RANK alone", []string{"LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2"}, "trace"},
		{"no world", []string{"MEDUSA_RANK=1"}, ""},
		{"no rank", []string{"MEDUSA_WORLD_SIZE=2"}, ""},
		{"beyond the last", []string{"MEDUSA_RANK=2", "MEDUSA_WORLD_SIZE=2"}, ""},
		{"no number", []string{"MEDUSA_RANK=1x", "MEDUSA_WORLD_SIZE=2"}, ""},
		{"negative", []string{"MEDUSA_RANK=-1", "MEDUSA_WORLD_SIZE=2"}, ""},
	} {
		dir := t.TempDir()
		c := Config{Mode: Record, TracePath: filepath.Join(dir, "trace"), ExitAtReady: true, ExtraEnv: tt.env}
		r := run(t, c, simulated(t), program)
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		if tt.file == "" {
			if len(files) != 0 || !strings.Contains(r.stderr, "contradict") {
				t.Errorf("%s: files %q, %s", tt.name, files, r.stderr)
			}
			continue
		}
		if len(files) != 1 || filepath.Base(files[0]) != tt.file || r.exit != 0 {
			t.Errorf("%s: exit %d, files %q, want %s\n%s", tt.name, r.exit, files, tt.file, r.stderr)
			continue
		}
		if _, err := trace.ReadAll(files[0]); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestSecondProcessOfARank(t *testing.T) {
	program, dir := build(t, "build/test/phases"), t.TempDir()
	c := Config{Mode: Record, TracePath: filepath.Join(dir, "trace"), ExitAtReady: true, ExtraEnv: []string{"MEDUSA_RANK=0", "MEDUSA_WORLD_SIZE=2"}}
	first := run(t, c, simulated(t), program)
	before := readFile(t, filepath.Join(dir, "trace.0"))
	second := run(t, c, simulated(t), program)
	if first.exit != 0 || second.exit != 0 || !strings.Contains(second.stderr, "is not recorded") {
		t.Errorf("exit %d and %d\n%s", first.exit, second.exit, second.stderr)
	}
	if readFile(t, filepath.Join(dir, "trace.0")) != before {
		t.Error("the second process changed the first one's trace")
	}
	if _, err := os.Stat(filepath.Join(dir, "trace.0.second")); err != nil {
		t.Errorf("no note of the second process: %v", err)
	}
}
