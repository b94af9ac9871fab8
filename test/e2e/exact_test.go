package e2e

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// started restores the engine once more, with options of medusa restore.
func started(t *testing.T, variables, options []string, path string, engine []string) (process, *status.Status) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "status.json")
	args := append(append([]string{"restore", "--status", file}, options...), path, "--")
	p := must(t, variables, "medusa", append(args, engine...)...)
	st, err := status.Read(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.stderr)
	}
	return p, st
}

// output is the engine's output without the word for how it started.
func output(t *testing.T, name string, p process) any {
	t.Helper()
	if name == "zoo" {
		_, out := zooOutput(t, p)
		return out
	}
	return decode(t, p).Runs
}

// One artifact restores at the recorded addresses and elsewhere, with the same outputs: with memory of the region; without, as
// asked; and without because the driver refuses hints, by another address, for all or for large reservations, or by an error.
func TestBothWays(t *testing.T) {
	all := engines(t)
	reference := all["reference"]
	all["reference"] = append(reference[:len(reference):len(reference)], "--batch-sizes", "1,2,8", "-o", "json")
	for name, engine := range all {
		t.Run(name, func(t *testing.T) {
			path, art := materialized(t, engine...)
			placed := 0
			for _, a := range art.Spec.Allocations {
				if a.Address != 0 {
					placed++
				}
			}
			if placed == 0 || art.Spec.Region.Base == 0 {
				t.Fatalf("%d of %d allocations have an address in %+v", placed, len(art.Spec.Allocations), art.Spec.Region)
			}
			want := output(t, name, must(t, nil, filepath.Base(engine[0]), engine[1:]...))
			for _, tt := range []struct {
				name               string
				variables, options []string
				addresses, why     string
			}{
				{"exact", nil, nil, status.Exact, ""},
				{"exact again", []string{"SIMGPU_SEED=7"}, []string{"--addresses=exact"}, status.Exact, ""},
				{"relocate", nil, []string{"--addresses=relocate"}, status.Relocated, "not asked for"},
				{"hints refused", []string{"SIMGPU_VMM_HINTS=refuse"}, nil, status.Relocated, " after cuInit)"},
				{"hints moved beyond a size", []string{"SIMGPU_VMM_HINTS=1G"}, nil, status.Relocated, "base 0x"},
				{"hints fail", []string{"SIMGPU_VMM_HINTS=fail"}, nil, status.Relocated, "refuses a reservation"},
			} {
				p, st := started(t, tt.variables, tt.options, path, engine)
				if st.Status != status.Restored {
					t.Fatalf("%s: native start: %s %s\n%s", tt.name, st.Reason, st.Detail, p.stderr)
				}
				if st.Addresses != tt.addresses || !strings.Contains(st.Relocated, tt.why) || (tt.why == "") != (st.Relocated == "") {
					t.Errorf("%s: addresses %s (%s), want %s (%s)", tt.name, st.Addresses, st.Relocated, tt.addresses, tt.why)
				}
				if got := output(t, name, p); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: outputs %v, natively %v", tt.name, got, want)
				}
			}
		})
	}
}

// materialize says why it records again.
func TestReasonForNoAddresses(t *testing.T) {
	p := must(t, []string{"ZOO_ASKS=ipc"}, "medusa", "materialize", "-o", filepath.Join(t.TempDir(), "x.medusa"), "--", testenv.Path(t, "build", "zoo"))
	if want := "record it again, at other addresses in each start: cuIpcGetMemHandle: "; !strings.Contains(p.stderr, want) {
		t.Errorf("no %q in:\n%s", want, p.stderr)
	}
}

// If drivers refuse hints when the artifact is made, or the engine makes calls that memory of a region cannot serve, the
// artifact has no addresses, and restores all the same.
func TestArtifactWithoutAddresses(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	for _, variables := range [][]string{{"SIMGPU_VMM_HINTS=refuse"}, {"ZOO_ASKS=ipc"}, {"ZOO_ASKS=peer"}, {"ZOO_ASKS=ipc-or-exit"}} {
		path, art := zooArtifact(t, variables)
		if art.Spec.Region != (graphir.Region{}) {
			t.Errorf("%v: the artifact has region %+v", variables, art.Spec.Region)
		}
		_, st := started(t, variables, nil, path, []string{zoo})
		if st.Status != status.Restored || st.Addresses != status.Relocated || st.Relocated != "the artifact has no addresses" {
			t.Errorf("%v: status %+v", variables, st)
		}
	}
}
