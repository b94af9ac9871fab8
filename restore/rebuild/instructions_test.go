package rebuild

import (
	"fmt"
	"runtime"
	"testing"

	"medusa/test/bench"
	"medusa/test/testenv"
)

// againVariable names the artifact of BenchmarkAgain.
const againVariable = "RESTORE_BENCH_ARTIFACT"

// ownInstructions is our cost of a node between opening an artifact and having its graphs, with a driver that returns at
// once. A change that makes a node dearer by more than the tolerance needs a reason, and a new number here. SHA-256 is
// counted as processors without instructions of its own compute it, since valgrind has none: 1,280 of the first, 590
// of the second.
var ownInstructions = []struct {
	workload bench.Workload
	most     float64
}{
	{bench.Paper()[1], 4030},  // three row groups
	{bench.Foundry(64), 2560}, // some twenty
}

// ownTolerance leaves room for other versions of Go and of the compressor.
const ownTolerance = 1.1

func TestOwnInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testenv.Skip(t, testenv.Counted)
	}
	testenv.Build(t, "build/bench/restore.test", "build/stub/libcuda.so.1", "build/lib/libmedusa_interpose.so")
	for _, f := range ownInstructions {
		t.Run(f.workload.Name, func(t *testing.T) {
			env := append(testenv.Simulated(t, againVariable+"="+artifactOf(t, f.workload), "MEDUSA_MODE=replay", "GOGC=off",
				"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "LD_PRELOAD="+testenv.Path(t, "build", "lib", "libmedusa_interpose.so")),
				"LD_LIBRARY_PATH="+testenv.Path(t, "build", "stub"))
			count := func(rounds int) int64 {
				return testenv.Instructions(t, env, testenv.Path(t, "build", "bench", "restore.test"), "-test.run", "^$", "-test.bench", "Again$",
					"-test.benchtime", fmt.Sprint(rounds, "x"))
			}
			const few, many = 2, 5
			if got := float64(count(many)-count(few)) / (many - few) / float64(f.workload.Nodes); got > f.most*ownTolerance {
				t.Errorf("%.0f instructions a node, %.0f when last looked at", got, f.most)
			} else {
				t.Logf("%.0f instructions a node", got)
			}
		})
	}
}
