package compile

import (
	"encoding/binary"
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// Explanation describes one parameter of a kernel node in two kept traces.
type Explanation struct {
	Graph     string          `json:"graph"`
	Node      int             `json:"node"`
	Kernel    string          `json:"kernel"`
	Params    []graphir.Param `json:"params"` // the kernel's layout
	Parameter int             `json:"parameter"`
	Words     []ExplainedWord `json:"words"`
}

// ExplainedWord is one aligned word of the parameter, or the bytes around such words.
type ExplainedWord struct {
	Offset  uint32      `json:"offset"` // in the parameter
	A       uint64      `json:"a"`
	B       uint64      `json:"b"`
	Verdict string      `json:"verdict"`
	NearA   []Neighbour `json:"near_a"`
	NearB   []Neighbour `json:"near_b"`
}

// Neighbour is a live allocation beside a word's value, or around it.
type Neighbour struct {
	Alloc    uint32 `json:"alloc"`
	Space    string `json:"space"`
	Addr     uint64 `json:"addr"`
	Size     uint64 `json:"size"`
	Distance int64  `json:"distance"` // of the value from its first byte
}

// Explain shows a parameter of a graph's node: its words in both runs, their targets, and the allocations beside. It makes
// no decision: compiling does.
func Explain(ra, rb *recording.Recording, graph string, node, parameter int) (*Explanation, error) {
	variables := numberVariables(ra, rb)
	a, b := newRun(ra, numbered(ra, nil), variables), newRun(rb, numbered(rb, nil), variables)
	ga, err := a.graphNamed(graph)
	if err != nil {
		return nil, fmt.Errorf("explain record-a: %w", err)
	}
	gb, err := b.graphNamed(graph)
	if err != nil {
		return nil, fmt.Errorf("explain record-b: %w", err)
	}
	prove, err := proverAt(addresses{run: a}, addresses{run: b}, 0, 0, &tensorMaps{a.TensorMaps, b.TensorMaps, &graphir.Spec{}})
	if err != nil {
		return nil, err
	}
	if len(ga.NodeRecords) == len(gb.NodeRecords) { // as compiling does, which goes no further if they differ
		if gb, err = pairNodes(prove, a, b, ga, gb); err != nil {
			return nil, fmt.Errorf("explain graph %q: %w", graph, err)
		}
	}
	ka, err := kernelNode(ga, graph, node)
	if err != nil {
		return nil, fmt.Errorf("explain record-a: %w", err)
	}
	kb, err := kernelNode(gb, graph, node)
	if err != nil {
		return nil, fmt.Errorf("explain record-b: %w", err)
	}
	f := a.Functions[ka.Function]
	e := &Explanation{Graph: graph, Node: node, Kernel: f.Name, Parameter: parameter}
	for _, p := range f.Params {
		e.Params = append(e.Params, graphir.Param{Offset: p.Offset, Size: p.Size})
	}
	if parameter < 0 || parameter >= len(e.Params) {
		return nil, fmt.Errorf("explain graph %q node %d: kernel %s has parameters 0 to %d, not %d", graph, node, f.Name, len(e.Params)-1, parameter)
	}
	p := e.Params[parameter]
	if end := uint64(p.Offset) + uint64(p.Size); end > uint64(len(ka.Params)) || end > uint64(len(kb.Params)) {
		return nil, fmt.Errorf("explain graph %q node %d: parameter %d lies outside the recorded bytes", graph, node, parameter)
	}
	if err := prove.moveTo(nodeMoment(ga, ka.Node), nodeMoment(gb, kb.Node)); err != nil {
		return nil, err
	}
	for o := uint32(0); o < p.Size; {
		n := min(8-(p.Offset+o)%8, p.Size-o)
		w := ExplainedWord{Offset: o, A: wordAt(ka.Params[p.Offset+o:], n), B: wordAt(kb.Params[p.Offset+o:], n)}
		prove.explain(&w, n)
		e.Words = append(e.Words, w)
		o += n
	}
	return e, nil
}

func wordAt(data []byte, n uint32) uint64 {
	var word [8]byte
	copy(word[:], data[:n])
	return binary.LittleEndian.Uint64(word[:])
}

func (p *prover) explain(w *ExplainedWord, size uint32) {
	switch {
	case size == 8:
		ptr, isPointer, err := p.word(w.A, w.B)
		switch {
		case err != nil:
			w.Verdict = "unproven: " + err.Reason
		case isPointer:
			w.Verdict = "pointer to " + ptr.String()
		default:
			w.Verdict = "constant"
		}
		w.NearA, w.NearB = p.a.near(w.A), p.b.near(w.B)
	case w.A == w.B:
		w.Verdict = "constant"
	default:
		w.Verdict = "unproven: it differs, and is part of no aligned word"
	}
}

// nearby is the greatest distance of a word from an allocation that explains it. A word further away from all memory is
// a number.
const nearby = 1 << 30

// near returns the allocation at or below the address and the next one above, if they are nearby.
func (s *liveSet) near(addr uint64) []Neighbour {
	k := s.upTo(addr)
	var out []Neighbour
	for _, k := range []int{k, s.live.from(k + 1)} {
		if k < 0 {
			continue
		}
		if a := s.byAddr[k]; addr+nearby >= a.Addr && addr < a.Addr+a.Size+nearby {
			out = append(out, Neighbour{a.ID, a.Space.String(), a.Addr, a.Size, int64(addr - a.Addr)})
		}
	}
	return out
}

// graphNamed reads the nodes of the graph with a label.
func (r *run) graphNamed(label string) (*recording.Body, error) {
	var labels []string
	for i, g := range r.instantiated() {
		name := g.Label
		if name == "" {
			name = fmt.Sprintf("graph-%d", i)
		}
		labels = append(labels, name)
		if name != label {
			continue
		}
		w, err := r.Walk()
		if err != nil {
			return nil, err
		}
		defer w.Close()
		return w.To(g)
	}
	return nil, fmt.Errorf("no graph %q (there are %q)", label, labels)
}

// kernelNode finds a node by its place.
func kernelNode(g *recording.Body, label string, node int) (*trace.Kernel, error) {
	if node < 0 || node >= len(g.NodeRecords) {
		return nil, fmt.Errorf("graph %q has %d nodes, no node %d", label, len(g.NodeRecords), node)
	}
	k, ok := g.NodeRecords[node].(*trace.Kernel)
	if !ok {
		return nil, fmt.Errorf("graph %q node %d is no kernel but a %v", label, node, g.NodeRecords[node].RecordType())
	}
	return k, nil
}
