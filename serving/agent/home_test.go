package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/serving/agent"
)

// Processes with the folder in their environment end when the next server opens it. Other processes, and those of another
// folder, go on.
func TestHomeEndsWhatIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	h, left, err := agent.OpenHome(dir)
	if err != nil || left != 0 {
		t.Fatal(left, err)
	}
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := agent.OpenHome(filepath.Join(shared, "state")); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("a folder that others can replace: %v", err)
	}
	if _, _, err := agent.OpenHome(dir); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	sleeper := func(env string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sleep", "600")
		cmd.Env = append(os.Environ(), env)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	ours, others := sleeper(h.Environ()), sleeper(h.Environ()+"2")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- ours.Wait() }()
	again, left, err := agent.OpenHome(dir)
	if err != nil || left != 1 {
		t.Fatalf("%d processes were left, %v", left, err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the engine that was left: %v", err)
	}
	if err := others.Process.Kill(); err != nil {
		t.Errorf("another process has ended: %v", err)
	}
	_ = others.Wait()
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
