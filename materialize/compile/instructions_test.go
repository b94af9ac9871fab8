package compile_test

import (
	"runtime"
	"testing"

	"medusa/test/bench"
	"medusa/test/testenv"
)

// compileInstructions is the cost of a node between two traces and an artifact's sections. A change that makes it dearer by more
// than the tolerance needs a reason, and a new number here.
const (
	compileInstructions = 17750
	compileTolerance    = 1.1 // for other versions of Go
)

func TestCompileInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testenv.Skip(t, testenv.Counted)
	}
	testenv.Build(t, "build/bench/compile.test")
	count := func(dir string) int64 {
		env := testenv.Simulated(t, compileVariable+"="+dir, "GOGC=off", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
		return testenv.Instructions(t, env, testenv.Path(t, "build", "bench", "compile.test"))
	}
	w, dir := bench.Paper()[1], t.TempDir()
	writeTraces(t, dir, w)
	got := float64(count(dir)-count(t.TempDir())) / float64(w.Nodes)
	t.Logf("%.0f instructions a node, %d when last looked at", got, compileInstructions)
	if got > compileInstructions*compileTolerance {
		t.Error("too many")
	}
}
