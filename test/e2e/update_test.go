package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// The example engine makes an executable graph so. update may follow it.
const (
	instantiate = "		MUST(cuGraphInstantiateWithFlags(&graphs[i], graph, 0));\n"
	update      = "		MUST(cuGraphExecUpdate_v2(graphs[i], graph, &(CUgraphExecUpdateResultInfo){0}));\n"
)

// captureAgain captures the layer once more, at a batch size.
func captureAgain(batch string) string {
	return "		MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));\n		layer(" + batch + ");\n" +
		"		MARK(medusa_mark_graph, label, batches[i]);\n		MUST(cuStreamEndCapture(stream, &graph));\n"
}

// Some engines update an executable graph right after they made it, or for each token. An update to an equal graph is accepted. A
// setter ends the run profile with the reason, and so does an update that changes the graph (TestMistakesOfEngines).
func TestUpdatedGraphs(t *testing.T) {
	for _, row := range []struct{ name, then, want string }{
		{"equal", update + captureAgain("batches[i]") + update + captureAgain("batches[i]") + update, ""},
		{"setter", "		{\n			size_t n = 1;\n			CUgraphNode node;\n			CUDA_KERNEL_NODE_PARAMS p;\n			MUST(cuGraphGetNodes(graph, &node, &n));\n" +
			"			MUST(cuGraphKernelNodeGetParams_v2(node, &p));\n			MUST(cuGraphExecKernelNodeSetParams_v2(graphs[i], node, &p));\n		}\n",
			`cuGraphExecKernelNodeSetParams_v2: it changed executable graph "decode-1" after it was instantiated (change the graph`},
	} {
		t.Run(row.name, func(t *testing.T) {
			engine := example(t, instantiate, instantiate+row.then)
			out := filepath.Join(t.TempDir(), "x.medusa")
			p := start(t, nil, "medusa", "materialize", "-o", out, "--", engine)
			if row.want == "" {
				if p.code != 0 {
					t.Fatalf("exit code %d\n%s", p.code, p.stderr)
				}
				if got := must(t, nil, "medusa", "restore", "--strict", out, "--", engine); !strings.HasPrefix(got.stdout, "restored ") {
					t.Errorf("restored: %q", got.stdout)
				}
				return
			}
			if p.code == 0 || !strings.Contains(p.stderr, row.want) || strings.Contains(p.stderr, "[2/6]") || strings.Contains(p.stderr, "recorder fault") {
				t.Errorf("exit code %d, want %q in the first step\n%s", p.code, row.want, p.stderr)
			}
		})
	}
}
