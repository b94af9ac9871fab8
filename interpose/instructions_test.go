package interpose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/testenv"
)

// instructions is what one driver call costs more under the interposer in replay mode, in instructions, on amd64 with gcc 12.
// A change that makes a call dearer by more than the tolerance needs a reason, and a new number here.
var instructions = []struct {
	function string
	calls    int // a round
	most     float64
}{
	{"cuLaunchKernel", 1, 45},
	{"cuMemAlloc+cuMemFree", 2, 562},
	{"cuEventCreate+cuEventDestroy", 2, 313},
	{"cuGraphKernelNodeSetParams", 1, 25},
	{"cuGraphInstantiate+cuGraphExecDestroy", 2, 190},
}

// instructionTolerance leaves room for other compilers and C libraries.
const instructionTolerance = 1.3

// Wall times on shared machines hide a regression of half; instructions on a fixed input do not.
func TestReplayInstructions(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("needs valgrind")
	}
	testenv.Build(t, "build/stub/calls", "build/lib/libmedusa_interpose.so")
	for _, f := range instructions {
		t.Run(f.function, func(t *testing.T) {
			t.Parallel()
			const few, many = 1000, 5000
			cost := func(variables ...string) float64 {
				return float64(countInstructions(t, f.function, many, variables)-countInstructions(t, f.function, few, variables)) / (many - few)
			}
			more := cost("MEDUSA_MODE=replay", "LD_PRELOAD="+testenv.Path(t, "build", "lib", "libmedusa_interpose.so")) - cost()
			if perCall := more / float64(f.calls); perCall > f.most*instructionTolerance {
				t.Errorf(f.function+": %.1f instructions a call more than without the interposer, %.1f when last looked at", perCall, f.most)
			}
		})
	}
}

// countInstructions runs the program of calls under callgrind.
func countInstructions(t *testing.T, function string, rounds int, variables []string) int64 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("valgrind", "--tool=callgrind", "--callgrind-out-file="+out, testenv.Path(t, "build", "stub", "calls"), function, fmt.Sprint(rounds))
	cmd.Env = append(testenv.Simulated(t, variables...), "LD_LIBRARY_PATH="+testenv.Path(t, "build", "stub"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "summary: "); ok {
			var n int64
			if _, err := fmt.Sscan(text, &n); err == nil {
				return n
			}
		}
	}
	t.Fatal("callgrind wrote no summary")
	return 0
}
