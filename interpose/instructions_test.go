package interpose

import (
	"fmt"
	"testing"

	"medusa/test/testenv"
)

// instructions is the extra cost of one driver call under the interposer in replay mode, in instructions, on amd64 with gcc 12. A
// change that exceeds the tolerance needs a reason, and a new number here.
var instructions = []struct {
	function string
	exact    bool // addresses
	calls    int  // per round
	most     float64
}{
	{"cuLaunchKernel", false, 1, 45},
	{"cuMemAlloc+cuMemFree", false, 2, 373},
	{"cuMemAlloc+cuMemFree", true, 2, 702},
	{"cuEventCreate+cuEventDestroy", false, 2, 253},
	{"cuGraphKernelNodeSetParams", false, 1, 25},
	{"cuGraphInstantiate+cuGraphExecDestroy", false, 2, 173},
	{"setters-of-executable-graphs", false, 12, 73},
	{"attributes", false, 2, 48},
}

// instructionTolerance leaves room for other compilers and C libraries.
const instructionTolerance = 1.3

// On shared machines, wall times cannot reveal a slowdown by half. Instruction counts for a fixed input can.
func TestReplayInstructions(t *testing.T) {
	testenv.Build(t, "build/stub/calls", "build/lib/libmedusa_interpose.so")
	for _, f := range instructions {
		t.Run(fmt.Sprintf("%s/exact=%t", f.function, f.exact), func(t *testing.T) {
			t.Parallel()
			const few, many = 1000, 5000
			count := func(rounds int, variables []string) int64 {
				env := append(testenv.Simulated(t, variables...), "LD_LIBRARY_PATH="+testenv.Path(t, "build", "stub"))
				return testenv.Instructions(t, env, testenv.Path(t, "build", "stub", "calls"), f.function, fmt.Sprint(rounds))
			}
			cost := func(variables ...string) float64 {
				return float64(count(many, variables)-count(few, variables)) / (many - few)
			}
			variables := []string{"MEDUSA_MODE=replay", "LD_PRELOAD=" + testenv.Path(t, "build", "lib", "libmedusa_interpose.so")}
			if f.exact {
				variables = append(variables, "MEDUSA_EXACT=0x120060000000:0x40000000000")
			}
			perCall := (cost(variables...) - cost()) / float64(f.calls)
			t.Logf("%.1f instructions a call more than without the interposer, %.1f when last looked at", perCall, f.most)
			if perCall > f.most*instructionTolerance {
				t.Error("too many")
			}
		})
	}
}
