package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		name, total, apps string
		want              float64
		fails             string
	}{
		{"one process", "8192\n", "7, 2048\n", 0.25, ""},
		{"several, and another's", "8192\n", "7, 2048\n9, 4096\n8, 1024\n", 0.375, ""},
		{"a process twice, as with two contexts", "1000\n", "7, 100\n7, 200\n", 0.3, ""},
		{"none of the engine's", "8192\n", "9, 4096\n", 0, "no process of the engine"},
		{"no process at all", "8192\n", "", 0, "no process of the engine"},
		{"a virtual machine that does not tell", "8192\n", "7, [N/A]\n", 0, "[N/A]"},
		{"more than there is", "8192\n", "7, 9000\n", 0, "9000"},
		{"no GPU", "[N/A]\n", "7, 1\n", 0, "[N/A]"},
		{"nothing", "", "", 0, "no number"},
		{"not a number that counts", "NaN", "7, 1", 0, "no number"},
	} {
		got, err := share(c.total, c.apps, []int{7, 8})
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// The command is asked for one GPU. If it fails, the memory is unknown.
func TestMeter(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if _, err := NewMeter("1"); err == nil {
		t.Error("a machine without nvidia-smi is measured")
	}
	script := `#!/bin/sh
[ "$1 $2 $4" = "-i 1 --format=csv,noheader,nounits" ] || exit 1
case $3 in
--query-gpu=memory.total) echo 1000 ;;
--query-compute-apps=pid,used_memory) echo ` + strconv.Itoa(os.Getpid()) + `, 250 ;;
esac
`
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for gpu, want := range map[string]float64{"1": 0.25, "2": 0} {
		m, err := NewMeter(gpu)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Share(t.Context(), []int{os.Getpid()}); got != want || (err == nil) != (want > 0) {
			t.Errorf("GPU %s: %v, %v", gpu, got, err)
		}
	}
}
