package interpose

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// Every way of finding the driver leads through the hooks, and the call reaches the driver exactly once.
func TestEveryWayToTheDriverIsCaught(t *testing.T) {
	fake := filepath.Dir(build(t, "build/test/fake/libcuda.so.1"))
	for _, c := range []struct{ name, program, way string }{
		{"direct linking", "reach-linked", "direct"},
		{"dlsym with the driver's handle", "reach", "dlsym"},
		{"dlsym RTLD_DEFAULT", "reach", "default"},
		{"dlsym RTLD_NEXT", "reach", "next"},
		{"cuGetProcAddress_v2", "reach", "procaddr"},
		{"cuGetProcAddress v1", "reach", "procaddr-v1"},
		{"cuGetProcAddress of itself", "reach", "procaddr-procaddr"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			recs, _ := record(t, Config{ExtraEnv: []string{"FAKE_LOG=" + log}}, 0, fake, build(t, "build/test/"+c.program), c.way)
			allocs, frees := of[*trace.Alloc](recs), of[*trace.Free](recs)
			if len(allocs) != 1 || len(frees) != 1 {
				t.Fatalf("%d allocations and %d frees recorded, want one each", len(allocs), len(frees))
			}
			if a, f := allocs[0], frees[0]; a.Size != 4096 || a.Kind != trace.AllocDevice || a.Addr == 0 || f.Addr != a.Addr || f.ID != a.ID {
				t.Errorf("recorded %+v and %+v", a, f)
			}
			calls := readFile(t, log)
			for _, call := range []string{"cuMemAlloc_v2\n", "cuMemFree_v2\n"} {
				if n := strings.Count(calls, call); n != 1 {
					t.Errorf("the driver saw %d calls of %q, want 1:\n%s", n, call, calls)
				}
			}
		})
	}
}

// Functions that dlvsym finds bypass the hooks. The trace reports them, and is not compiled.
func TestLookupByVersionIsReported(t *testing.T) {
	fake := filepath.Dir(build(t, "build/test/versioned/libcuda.so.1"))
	recs, _ := recordWithFaults(t, Config{}, 0, fake, build(t, "build/test/reach"), "dlvsym")
	var names []string
	for _, f := range of[*trace.Fault](recs) {
		if !strings.Contains(f.Reason, "dlvsym") {
			t.Errorf("fault %+v", f)
		}
		names = append(names, f.Call)
	}
	if want := []string{"cuMemAlloc_v2", "cuMemFree_v2"}; !slices.Equal(names, want) {
		t.Errorf("faults of %q, want %q", names, want)
	}
}

// The old ABI of a hooked base name is another function, which must not be replaced.
func TestOldABIIsNotHooked(t *testing.T) {
	fake := filepath.Dir(build(t, "build/test/fake/libcuda.so.1"))
	recs, _ := record(t, Config{}, 0, fake, build(t, "build/test/reach"), "dlsym")
	if len(of[*trace.Alloc](recs)) != 1 {
		t.Fatal("the control run recorded no allocation")
	}
	r := run(t, Config{Mode: Record, TracePath: filepath.Join(t.TempDir(), "trace")}, fake, build(t, "build/test/reach"), "old-abi")
	if r.exit != 0 {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
}

// A process that never calls the driver sees no difference with the interposer, in any mode, and writes no trace. The same holds
// for a child that inherits the environment.
func TestInertWithoutDriverCall(t *testing.T) {
	program := build(t, "build/test/inert")
	for _, argv := range [][]string{{program}, {program, "child"}} {
		want := ""
		for _, mode := range []string{"not preloaded", "", "record", "replay"} {
			path := filepath.Join(t.TempDir(), "trace")
			cmd, err := Command(t.Context(), underTest(t, Config{Mode: Replay}), argv)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "MEDUSA_MODE="+mode, "MEDUSA_TRACE="+path, "LD_LIBRARY_PATH="+t.TempDir())
			if mode == "not preloaded" {
				cmd.Env = append(cmd.Env, "LD_PRELOAD=")
			}
			r := wait(t, cmd)
			if mode == "not preloaded" {
				want = r.stdout
			}
			if r.exit != 0 || r.stderr != "" || r.stdout != want {
				t.Errorf("%v, mode %q: exit %d\n%s%s\nwant\n%s", argv, mode, r.exit, r.stdout, r.stderr, want)
			}
			if readFile(t, path) != "" {
				t.Errorf("%v, mode %q: a trace appeared", argv, mode)
			}
		}
		for _, line := range []string{"default 0\n", "self 0\n", "cudnn 0\n", "printf 1\n", "libcuda 0\n", "undefined symbol: cuMemAlloc_v2"} {
			if strings.Count(want, line) != len(argv) {
				t.Errorf("%v: no %q in\n%s", argv, line, want)
			}
		}
	}
}

// Preloaded with no mode set, every call passes through untouched.
func TestInertMode(t *testing.T) {
	fake := filepath.Dir(build(t, "build/test/fake/libcuda.so.1"))
	log := filepath.Join(t.TempDir(), "log")
	for _, program := range []string{"reach-linked", "reach"} {
		cmd, err := Command(t.Context(), underTest(t, Config{Mode: Replay}),
			[]string{build(t, "build/test/"+program), map[string]string{"reach": "default", "reach-linked": "direct"}[program]})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "MEDUSA_MODE=none", "LD_LIBRARY_PATH="+fake, "FAKE_LOG="+log)
		if r := wait(t, cmd); r.exit != 0 || r.stderr != "" {
			t.Errorf("%s: exit %d: %s", program, r.exit, r.stderr)
		}
	}
	if calls := readFile(t, log); strings.Count(calls, "cuMemAlloc_v2\n") != 2 {
		t.Errorf("calls of the driver:\n%s", calls)
	}
}
