package interpose

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A process that captures and has marked no phase writes one byte, once, to the reader of the pipe.
func TestUnmarkedCapture(t *testing.T) {
	for _, row := range []struct {
		program   string
		mode      Mode
		exit      int
		listening bool
		bytes     int
	}{
		{"graph", Replay, 0, true, 1},
		{"graph", Replay, 0, false, 0},
		{"graph", Record, 0, true, 0},
		{"phases", Replay, 9, true, 0}, // captures twice
		{"allocs", Replay, 0, true, 0}, // makes no capture
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		pipe, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !row.listening {
			pipe.Close()
		}
		c := Config{Mode: row.mode, ExtraEnv: []string{"MEDUSA_UNMARKED=" + path}}
		if row.mode == Record {
			c.TracePath = filepath.Join(dir, "trace")
		}
		r := run(t, c, simulated(t), build(t, "build/test/"+row.program))
		if r.exit != row.exit {
			t.Errorf("%s in mode %s: exit %d: %s", row.program, row.mode, r.exit, r.stderr)
		}
		if !row.listening {
			continue
		}
		var left [8]byte
		n, err := syscall.Read(int(pipe.Fd()), left[:])
		if n = max(n, 0); n != row.bytes || (n == 0) != (err == syscall.EAGAIN) {
			t.Errorf("%s in mode %s: %d bytes (%v), want %d", row.program, row.mode, n, err, row.bytes)
		}
		pipe.Close()
	}
}
