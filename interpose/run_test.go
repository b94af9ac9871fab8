package interpose

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// announced is output that calls first after each write.
type announced struct {
	text  bytes.Buffer
	first func()
}

func (p *announced) Write(data []byte) (int, error) {
	defer p.first()
	return p.text.Write(data)
}

// leaves is a command that leaves a process in a session of its own behind, prints its ID and then runs `then`.
func leaves(ctx context.Context, before, then string) (*exec.Cmd, *announced) {
	cmd := exec.CommandContext(ctx, "sh", "-c", before+"; setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!; "+then)
	out := &announced{first: func() {}}
	cmd.Stdout = out
	return cmd, out
}

// alive reports whether the process whose ID was printed still runs.
func alive(t *testing.T, out *announced) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(out.text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(pid, 0) == nil
}

// With End, processes that a command leaves behind end with it. Otherwise they may live on.
func TestEndKillsTheRest(t *testing.T) {
	cmd, out := leaves(t.Context(), ":", "exit 3")
	var exit *exec.ExitError
	if err := Run(cmd, End); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
	if alive(t, out) {
		t.Error("a process is left")
	}
	cmd, out = leaves(t.Context(), ":", "exit 3")
	if err := Run(cmd, Terminate); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
	if !alive(t, out) {
		t.Error("a process that may live on was killed")
	} else if pid, err := strconv.Atoi(strings.TrimSpace(out.text.String())); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// End asks first, and then kills.
func TestEndOfACommandThatGoesOn(t *testing.T) {
	defer func(d time.Duration) { endGrace = d }(endGrace)
	for _, row := range []struct {
		trap  string
		grace time.Duration
		code  int
	}{{"trap 'exit 4' TERM", 10 * time.Minute, 4}, {"trap '' TERM", time.Millisecond, 128 + 9}} {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, out := leaves(ctx, row.trap, "while :; do sleep 0.01; done")
		endGrace, out.first = row.grace, cancel
		var exit *exec.ExitError
		if err := Run(cmd, End); !errors.As(err, &exit) || exit.ExitCode() != row.code {
			t.Errorf("%s: got %v, want exit status %d", row.trap, err, row.code)
		}
		if alive(t, out) {
			t.Errorf("%s: a process is left", row.trap)
		}
		cancel()
	}
}
