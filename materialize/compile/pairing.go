package compile

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// pairNodes returns record-b's graph with its nodes in the order of record-a's: gb itself if they are in that order. The prover resolves
// words; its moment changes.
func pairNodes(p *prover, a, b *run, ga, gb *recording.Body) (*recording.Body, error) {
	sa, err := newShape(a, ga)
	if err != nil {
		return nil, fmt.Errorf("record-a: %w", err)
	}
	sb, err := newShape(b, gb)
	if err != nil {
		return nil, fmt.Errorf("record-b: %w", err)
	}
	if err := tellApart(p, sa, sb); err != nil {
		return nil, err
	}
	order, err := topological(sa.in, sa.out)
	if err != nil {
		return nil, fmt.Errorf("record-a: %w", err)
	}
	groups := sb.byPlace()
	partner := make([]int, len(ga.NodeRecords))
	var left []int
	for _, i := range order {
		twins := groups[sa.place[i]]
		if len(twins) == 0 {
			partner[i] = -1
			left = append(left, i)
			continue
		}
		k := max(0, slices.IndexFunc(twins, func(j int) bool { return sameBefore(sa.in[i], sb.in[j], partner) }))
		partner[i] = twins[k]
		groups[sa.place[i]] = slices.Delete(twins, k, k+1)
	}
	return reorder(gb, partner, left, groups), nil
}

// A driver promises no order in which it lists the nodes of a graph. So nodes of the two runs are paired by their content and
// by the nodes before and behind them. A wrong pair does no harm: its words are then unproven, or its edges differ.

// shape is a graph of one run, as pairing looks at it.
type shape struct {
	r       *run
	g       *recording.Body
	in, out [][]link // by node
	own     []uint64 // by node: its content
	place   []uint64 // ... and its neighbours'
}

func newShape(r *run, g *recording.Body) (*shape, error) {
	edges, err := edgeIndices(g)
	if err != nil {
		return nil, err
	}
	n := len(g.NodeRecords)
	s := &shape{r: r, g: g, own: make([]uint64, n)}
	s.in, s.out = linksOf(n, edges)
	for i, rec := range g.NodeRecords {
		if s.own[i], err = nodeTypes[rec.RecordType()].kind(s, rec); err != nil {
			return nil, err
		}
	}
	return s, s.settle()
}

// link is an edge from or to another node.
type link struct {
	node int
	data uint64
}

// linksOf lists each node's edges.
func linksOf(nodes int, edges []graphir.Edge) (in, out [][]link) {
	in, out = make([][]link, nodes), make([][]link, nodes)
	for _, e := range edges {
		data := uint64(e.FromPort) | uint64(e.ToPort)<<8 | uint64(e.Type)<<16
		out[e.From] = append(out[e.From], link{int(e.To), data})
		in[e.To] = append(in[e.To], link{int(e.From), data})
	}
	return in, out
}

func mix(values ...uint64) uint64 {
	h := uint64(len(values))
	for _, v := range values {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

var nameSeed = maphash.MakeSeed()

// settle finds each node's place.
func (s *shape) settle() (err error) {
	if s.place, err = placesOf(s.own, s.in, s.out); err != nil {
		return fmt.Errorf("graph %q: %w", s.g.Label, err)
	}
	return nil
}

// placesOf sums up each node with all that lies before it, and all behind it.
func placesOf(own []uint64, in, out [][]link) ([]uint64, error) {
	before, err := spread(own, in, out)
	if err != nil {
		return nil, err
	}
	behind, err := spread(own, out, in)
	if err != nil {
		return nil, err
	}
	for i := range before {
		before[i] = mix(before[i], behind[i])
	}
	return before, nil
}

// spread sums up each node with those that it comes after.
func spread(own []uint64, in, out [][]link) ([]uint64, error) {
	sums := make([]uint64, len(own))
	var values []uint64
	order, err := topological(in, out)
	for _, i := range order {
		values = values[:0]
		for _, l := range in[i] {
			values = append(values, mix(sums[l.node], l.data))
		}
		slices.Sort(values)
		sums[i] = mix(append(values, own[i])...)
	}
	return sums, err
}

// topological lists nodes, each behind those that it comes after.
func topological(in, out [][]link) ([]int, error) {
	waits := make([]int, len(in))
	order := make([]int, 0, len(in))
	for i := range in {
		if waits[i] = len(in[i]); waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, l := range out[order[at]] {
			if waits[l.node]--; waits[l.node] == 0 {
				order = append(order, l.node)
			}
		}
	}
	if len(order) < len(in) {
		return nil, recording.ErrDangling
	}
	return order, nil
}

// tellApart refines the places of nodes that are alike by the words of their parameters that tell them apart in both runs: an
// address by its target. Padding does not, since it repeats in no run.
func tellApart(p *prover, sa, sb *shape) error {
	ga, gb := sa.byPlace(), sb.byPlace()
	refined := false
	for place, alike := range ga {
		twins := gb[place]
		if len(alike) < 2 || len(twins) != len(alike) {
			continue
		}
		wa, err := sa.meanings(alike, p.a)
		if err != nil {
			return err
		}
		wb, err := sb.meanings(twins, p.b)
		if err != nil {
			return err
		}
		for o := range wa[0] {
			ca, cb := column(wa, o), column(wb, o)
			if !slices.Equal(slices.Sorted(slices.Values(ca)), slices.Sorted(slices.Values(cb))) {
				continue
			}
			for k := range alike {
				sa.own[alike[k]], sb.own[twins[k]] = mix(sa.own[alike[k]], ca[k]), mix(sb.own[twins[k]], cb[k])
			}
			refined = true
		}
	}
	p.spans()
	if !refined {
		return nil
	}
	return cmp.Or(sa.settle(), sb.settle())
}

// byPlace groups nodes that only their parameters tell apart.
func (s *shape) byPlace() map[uint64][]int {
	groups := make(map[uint64][]int, len(s.place))
	for i, p := range s.place {
		groups[p] = append(groups[p], i)
	}
	return groups
}

// meanings returns for each of the nodes the meaning of its parameters' words at its moment.
func (s *shape) meanings(nodes []int, live *liveSet) ([][]uint64, error) {
	out := make([][]uint64, len(nodes))
	for k, i := range nodes {
		if err := live.moveTo(nodeMoment(s.g, nodeHandle(s.g.NodeRecords[i]))); err != nil {
			return nil, err
		}
		for _, w := range nodeTypes[s.g.NodeRecords[i].RecordType()].words(s.g.NodeRecords[i]) {
			if p, n := live.resolve(w); n > 0 {
				w = mix(uint64(p[0].Space), uint64(p[0].Index), p[0].Offset)
			}
			out[k] = append(out[k], w)
		}
	}
	return out, nil
}

func column(words [][]uint64, o int) []uint64 {
	out := make([]uint64, len(words))
	for i, w := range words {
		if o < len(w) {
			out[i] = w[o]
		}
	}
	return out
}

// sameBefore reports whether two nodes come directly after nodes that are paired.
func sameBefore(a, b []link, partner []int) bool {
	if len(a) != len(b) {
		return false
	}
	for _, l := range a {
		if !slices.Contains(b, link{partner[l.node], l.data}) {
			return false
		}
	}
	return true
}

// reorder gives nodes without a partner those that are left, as listed, so that comparing them names the differences.
func reorder(g *recording.Body, partner, left []int, groups map[uint64][]int) *recording.Body {
	var rest []int
	for _, twins := range groups {
		rest = append(rest, twins...)
	}
	slices.Sort(rest)
	slices.Sort(left)
	for k, i := range left {
		partner[i] = rest[k]
	}
	nodes, changed := make([]trace.Record, len(partner)), false
	for i, j := range partner {
		nodes[i] = g.NodeRecords[j]
		changed = changed || i != j
	}
	if !changed {
		return g
	}
	out := *g
	out.NodeRecords = nodes
	return &out
}
