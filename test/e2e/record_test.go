package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/test/testenv"
)

// recordRun says how one recording differs from the plain one.
type recordRun struct {
	gapSeed   uint64
	variables []string
	preload   string // a library before the interposer
}

// record records an engine's start as record-a and record-b do.
func record(t *testing.T, run recordRun, argv ...string) *recording.Recording {
	t.Helper()
	testenv.Build(t, "lib", "bin", "zoo")
	path := filepath.Join(t.TempDir(), "trace")
	library := testenv.Path(t, "build", "lib", interpose.LibraryName)
	cmd, err := interpose.Command(context.Background(), interpose.Config{
		Library: library, Mode: interpose.Record, TracePath: path, GapSeed: run.gapSeed, ExitAtReady: true}, argv)
	if err != nil {
		t.Fatal(err)
	}
	env := testenv.Simulated(t, append(run.variables, "MEDUSA_RUN=record", "MEDUSA_KV_BYTES=16777216", "MEDUSA_WORKSPACE_BYTES=4096")...)
	for _, v := range cmd.Env {
		if strings.HasPrefix(v, "MEDUSA_") {
			env = append(env, v)
		}
	}
	preload := library
	if run.preload != "" {
		preload = run.preload + ":" + library
	}
	cmd.Env = append(env, "LD_PRELOAD="+preload)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	r, err := recording.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compiled compiles two recordings that need no run to settle padding: record-a, and a record-b that it makes with gaps. It makes another one
// if a word stays undecided: of some dozen large allocations, one may by chance have an address whose lower half is the same in both.
func compiled(t *testing.T, a *recording.Recording, run recordRun, argv ...string) (spec *graphir.Spec, err error) {
	t.Helper()
	var word *compile.WordError
	for run.gapSeed = 42; run.gapSeed < 46; run.gapSeed++ {
		var pads compile.Paddings
		if spec, pads, err = compile.Compile(a, record(t, run, argv...), nil); err == nil {
			err = pads.Unproven()
		}
		if !errors.As(err, &word) || !word.Retry {
			break
		}
	}
	return spec, err
}

func engines(t *testing.T) map[string][]string {
	return map[string][]string{
		"zoo":       {testenv.Path(t, "build", "zoo")},
		"reference": {testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"), "--batches", "1"},
	}
}

// sharedObject compiles a C file of testdata.
func sharedObject(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".so")
	cmd := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", testenv.Path(t, "interpose", "preload"),
		"-o", out, filepath.Join("testdata", name+".c"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// plainProgram compiles the C program without Medusa, linked with the driver as such programs are.
func plainProgram(t *testing.T) string {
	t.Helper()
	testenv.Build(t, "lib")
	out := filepath.Join(t.TempDir(), "plain")
	cmd := exec.Command("cc", "-Wall", "-Werror", "-I", testenv.Path(t, "internal", "cuda", "include"), "-I", testenv.Path(t, "build", "generated"), "-o", out,
		filepath.Join("testdata", "plain.c"), testenv.Path(t, "build", "simulated", "libcuda.so.1"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// Marks label; they never replace tracing: without any but phases, graph labels, inputs and outputs, the graph section is
// the same, byte for byte.
func TestMarksOnlyLabel(t *testing.T) {
	silent := sharedObject(t, "nomarks")
	for name, argv := range engines(t) {
		t.Run(name, func(t *testing.T) {
			section := func(preload string) []byte {
				spec, err := compiled(t, record(t, recordRun{preload: preload}, argv...), recordRun{preload: preload}, argv...)
				if err != nil {
					t.Fatal(err)
				}
				sections, err := graphir.EncodeDetached(spec, nil)
				if err != nil {
					t.Fatal(err)
				}
				if marked := preload == ""; marked != hasWeights(spec) && name != "zoo" {
					t.Fatalf("with all marks %v, weights named %v", marked, hasWeights(spec))
				}
				return sections.Graph
			}
			if !bytes.Equal(section(""), section(silent)) {
				t.Error("the graph section depends on marks")
			}
		})
	}
}

func hasWeights(spec *graphir.Spec) bool {
	for _, t := range spec.Tensors {
		if t.Role == graphir.RoleWeight {
			return true
		}
	}
	return false
}
