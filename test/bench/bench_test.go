package bench

import (
	"bytes"
	"testing"
	"time"

	"medusa/interpose/trace"
)

// The suite has the totals that the paper gives.
func TestPaperTotals(t *testing.T) {
	models, nodes, pointers := Paper(), 0, 0
	for _, w := range models {
		nodes, pointers = nodes+w.Nodes, pointers+w.Pointers
		if len(w.Batches) != 35 {
			t.Errorf("%s has %d batch sizes", w.Name, len(w.Batches))
		}
	}
	if len(models) != 10 || nodes != 139364 || pointers != 538507 {
		t.Errorf("%d models, %d nodes, %d pointers", len(models), nodes, pointers)
	}
	if n := len(VLLM().Batches); n != 51 {
		t.Errorf("vLLM has %d batch sizes", n)
	}
}

// A trace holds the nodes and pointers of its workload, in both runs.
func TestTraceHoldsTheWorkload(t *testing.T) {
	for _, w := range []Workload{Paper()[3], Foundry(128)} {
		for run := range 2 {
			var b bytes.Buffer
			if err := w.write(&b, run); err != nil {
				t.Fatal(err)
			}
			r, err := trace.NewReader(w.Name, &b, int64(b.Len()))
			if err != nil {
				t.Fatal(err)
			}
			nodes, pointers, graphs := 0, 0, 0
			for {
				rec, err := r.Next()
				if err != nil {
					break
				}
				switch v := rec.(type) {
				case *trace.Graph:
					graphs++
				case *trace.Kernel:
					nodes++
					pointers += count(v.Params)
				case *trace.Memset:
					nodes, pointers = nodes+1, pointers+1
				}
			}
			if graphs != len(w.Batches) || nodes != w.Nodes || pointers != w.Pointers {
				t.Errorf("%s run %d: %d graphs, %d nodes, %d pointers; want %d, %d, %d", w.Name, run, graphs, nodes, pointers, len(w.Batches), w.Nodes, w.Pointers)
			}
		}
	}
}

// count finds the addresses among words; numbers of the workloads stay below 2^32 in each half.
func count(params []byte) int {
	n := 0
	for i := 0; i+8 <= len(params); i += 8 {
		if params[i+5] >= 0x7f {
			n++
		}
	}
	return n
}

func TestAlternate(t *testing.T) {
	rounds := 0
	got := Alternate(3, func() time.Duration { rounds++; return time.Duration(rounds) })
	if len(got[0]) != 3 || got[0][0] != 2 {
		t.Errorf("rounds %v: the first must not count", got[0])
	}
}
