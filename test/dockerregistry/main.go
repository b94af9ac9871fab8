// Command dockerregistry shows, against a real registry server, that artifacts can be pushed, pulled, baked and trusted, and that
// no half-made artifact is ever visible, however a pull ends.
//
// In: the built project (make), docker-registry on the path. Out: one line a step, and last "test-oci: PASS ..." with
// the versions used. Fails: at the first failed step, with exit code 1. No step is skipped.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
)

func main() {
	dir, err := os.MkdirTemp("", "medusa-oci-")
	if err == nil {
		err = run(dir)
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "test-oci: FAIL: %v\n", err)
		os.Exit(1)
	}
}

// test is the state that the steps share.
type test struct {
	dir      string // of this run
	build    string
	engine   []string
	registry *server
	proxy    *proxy // in front of the registry
	large    string // an artifact that takes a while to pull
	small    string
	native   tokens
}

func run(dir string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	t := &test{dir: dir, build: filepath.Join(root, "build")}
	t.engine = []string{filepath.Join(t.build, "reference"), "run", "--model", filepath.Join(root, "runners", "reference", "models", "tiny"),
		"--batches", "1:4,2,35:3", "-o", "json"}
	if t.registry, err = startRegistry(dir); err != nil {
		return err
	}
	defer t.registry.stop()
	if t.proxy, err = startProxy(t.registry.host); err != nil {
		return err
	}
	defer t.proxy.stop()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"materialize", t.materialize},
		{"push, pull on a clean cache, restore", t.pushPullRestore},
		{"signatures", t.signatures},
		{"artifacts for several GPUs under one tag", t.index},
		{"restore from a baked image's layer", t.bake},
		{"a registry that drops connections or lies", t.badRegistry},
		{"a full disk", t.fullDisk},
		{"workers that pull and evict at once", t.workers},
		{fmt.Sprintf("a pull killed at %d random points", kills), t.killed},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("ok  %s\n", step.name)
	}
	fmt.Printf("test-oci: PASS device=simulated registry=%q graphs=%d tokens=identical pulled=restored baked=restored kills=%d\n",
		t.registry.version, t.native.Graphs, kills)
	return nil
}

// tokens is the part of an engine's output that must not depend on how it started.
type tokens struct {
	Graphs int             `json:"graphs"`
	Runs   json.RawMessage `json:"runs"`
}

// medusa runs the tool with a cache, and with variables added to the environment.
func (t *test) medusa(cache string, env []string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.Command(filepath.Join(t.build, "medusa"), args...)
	cmd.Env = append(append(os.Environ(), "MEDUSA_CACHE="+cache, "DOCKER_CONFIG="+t.dir,
		"LD_LIBRARY_PATH="+filepath.Join(t.build, "simulated"), "MEDUSA_LIB="+filepath.Join(t.build, "lib", "libmedusa_interpose.so")), env...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("medusa %s: %w\n%s", strings.Join(args, " "), err, log.String())
	}
	return strings.TrimSpace(out.String()), log.String(), err
}

// fails demands that the tool fails and says why.
func (t *test) fails(cache string, env []string, want string, args ...string) error {
	_, log, err := t.medusa(cache, env, args...)
	if err == nil {
		return fmt.Errorf("medusa %s succeeded", strings.Join(args, " "))
	}
	if !strings.Contains(log, want) {
		return fmt.Errorf("medusa %s: %q does not say %q", strings.Join(args, " "), log, want)
	}
	return nil
}

func (t *test) path(name string) string { return filepath.Join(t.dir, name) }

// restores demands that an artifact restores the engine, with the tokens of a native start.
func (t *test) restores(cache string, env []string, ref ...string) error {
	status := t.path("status.json")
	args := append(append([]string{"restore"}, ref...), "--strict", "--status", status, "--")
	out, _, err := t.medusa(cache, env, append(args, t.engine...)...)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(status)
	if err != nil {
		return err
	}
	var s struct{ Status string }
	if err := json.Unmarshal(data, &s); err != nil || s.Status != "restored" {
		return fmt.Errorf("the engine's status is %s (%v)", data, err)
	}
	var got tokens
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, t.native) {
		return fmt.Errorf("tokens differ: %s natively, %s restored", t.native.Runs, got.Runs)
	}
	return nil
}
