// Package e2e holds whole-process tests: the built medusa materializes, verifies and restores real engine processes on
// the simulated GPU.
package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// process is one finished child.
type process struct {
	stdout, stderr string
	code           int
}

// start runs a program of build/ on the simulated GPU with variables added.
func start(t *testing.T, variables []string, program string, args ...string) process {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(testenv.Path(t, "build", program), args...)
	cmd.Env = testenv.Simulated(t, variables...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	code := 0
	if err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return process{out.String(), errs.String(), code}
}

// must is start for a child that has to succeed.
func must(t *testing.T, variables []string, program string, args ...string) process {
	t.Helper()
	p := start(t, variables, program, args...)
	if p.code != 0 {
		t.Fatalf("%s %v: exit %d\n%s", program, args, p.code, p.stderr)
	}
	return p
}

// materialized makes an artifact of the engine command.
func materialized(t *testing.T, engine ...string) (path string, art *artifacts.Artifact) {
	t.Helper()
	testenv.Build(t, "lib", "bin", "zoo")
	path = filepath.Join(t.TempDir(), "x.medusa")
	must(t, nil, "medusa", append([]string{"materialize", "-o", path, "--"}, engine...)...)
	art, err := artifacts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, art
}

// restored starts the engine from the artifact and returns its output and its status. Each artifact is restored both ways:
// at the recorded addresses, which is returned, and elsewhere, which has to end alike. A framework's allocator that breaks ties
// by address may place blocks differently there, which is another reason to start natively, never one for other outputs.
func restored(t *testing.T, variables []string, path string, engine ...string) (process, *status.Status) {
	t.Helper()
	p, st := started(t, variables, []string{"--addresses=exact"}, path, engine)
	moved, so := started(t, variables, []string{"--addresses=relocate"}, path, engine)
	ties := slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, "ZOO_TIES") })
	if st.Status != so.Status && !ties {
		t.Errorf("%s at the recorded addresses (%s), %s elsewhere (%s)", st.Status, st.Detail, so.Status, so.Detail)
	}
	if so.Status == status.Restored && so.Addresses != status.Relocated {
		t.Errorf("relocation was asked for: addresses %s", so.Addresses)
	}
	if name := filepath.Base(engine[0]); !reflect.DeepEqual(output(t, name, p), output(t, name, moved)) {
		t.Errorf("outputs at the recorded addresses and elsewhere differ")
	}
	return p, st
}

func zooOutput(t *testing.T, p process) (restored bool, output string) {
	t.Helper()
	var r struct {
		Restored bool
		Output   string
	}
	if err := json.Unmarshal([]byte(p.stdout), &r); err != nil || r.Output == "" {
		t.Fatalf("zoo printed %q: %v", p.stdout, err)
	}
	return r.Restored, r.Output
}
