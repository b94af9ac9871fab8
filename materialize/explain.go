package materialize

import (
	"fmt"
	"path/filepath"

	"medusa/materialize/compile"
	"medusa/materialize/recording"
)

// Explain reads the traces that Options.Traces kept of a rank and shows a parameter of a graph's node.
func Explain(dir string, rank int, graph string, node, parameter int) (*compile.Explanation, error) {
	a, err := keptTrace(dir, runRecordA, rank)
	if err != nil {
		return nil, err
	}
	b, err := keptTrace(dir, runRecordB, rank)
	if err != nil {
		return nil, err
	}
	return compile.Explain(a, b, graph, node, parameter)
}

func keptTrace(dir, run string, rank int) (*recording.Recording, error) {
	all, err := readRanks(run, filepath.Join(dir, run+traceSuffix), recording.Read)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= len(all) {
		return nil, fmt.Errorf("explain %s: the engine has ranks 0 to %d, not %d", run, len(all)-1, rank)
	}
	return all[rank], nil
}
