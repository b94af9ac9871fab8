package compile

import (
	"fmt"
	"maps"
	"slices"

	"medusa/graphir"
)

// use is a place in a graph.
type use struct {
	label string
	node  int
}

// uses collects the objects that compiled graphs refer to, graph by graph, and refuses pointers that a restored process could not
// resolve.
type uses struct {
	spec       *graphir.Spec
	late       map[uint32]bool // modules that a restored process does not load by itself
	division   *blocks
	twins      twins
	children   int                             // of Spec.Children that have been looked at
	events     int                             // that nodes refer to, counted from the first
	objects    [graphir.SpaceTensor + 1][]bool // by space and entry of its table
	modules    map[uint32]use                  // of each module, the first launch of a kernel
	candidates []layerRun
	known      map[string]int // candidates by their modules
}

func newUses(spec *graphir.Spec, late map[uint32]bool, division *blocks) *uses {
	return &uses{spec: spec, late: late, division: division, twins: findTwins(spec),
		modules: map[uint32]use{}, known: map[string]int{}}
}

// add looks at a graph, and at the graphs that it embeds.
func (u *uses) add(g *graphir.Graph) error {
	for ; u.children < len(u.spec.Children); u.children++ {
		if err := u.pointers(&u.spec.Children[u.children]); err != nil {
			return err
		}
	}
	if err := u.pointers(g); err != nil {
		return err
	}
	c := layerRun{g.Batch, map[uint32]bool{}, map[uint32]bool{}}
	for i := range g.Nodes {
		eachKernel(u.spec, &graphir.Graph{Nodes: g.Nodes[i : i+1]}, func(k uint32) {
			m := u.spec.Kernels[k].Module
			if _, known := u.modules[m]; !known {
				u.modules[m] = use{g.Label, i}
			}
			if u.late[m] {
				c.modules[m], c.kernels[k] = true, true
			}
		})
	}
	u.candidate(c)
	return nil
}

func (u *uses) pointers(g *graphir.Graph) error {
	reason := ""
	visit := func(p graphir.Pointer) {
		seen := &u.objects[p.Space]
		if n := int(p.Index) + 1; n > len(*seen) {
			*seen = append(*seen, make([]bool, n-len(*seen))...)
		}
		(*seen)[p.Index] = true
		if reason == "" {
			reason = u.division.problem(p)
		}
		if reason == "" {
			reason = u.twins.problem(p)
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Pointers(visit); reason != "" {
			return &RefusedError{g.Label, i, nodeTypeName(uint32(n.Type)), reason}
		}
		if n.Type == graphir.NodeEventWait || n.Type == graphir.NodeEventRecord {
			u.events = max(u.events, int(n.Target)+1)
		}
	}
	return nil
}

// candidate keeps the smallest batch size of those with the same modules.
func (u *uses) candidate(c layerRun) {
	key := fmt.Sprint(slices.Sorted(maps.Keys(c.modules)))
	i, known := u.known[key]
	switch {
	case !known:
		u.known[key] = len(u.candidates)
		u.candidates = append(u.candidates, c)
	case c.batch < u.candidates[i].batch:
		u.candidates[i] = c
	}
}

// target names the object that a pointer leads to.
type target struct {
	space graphir.Space
	index uint32
}

// reachable returns the objects that the graphs' pointers lead to, through saved pointers too, and the variables of modules whose
// kernels they launch: a kernel needs no pointer to reach those. Variables of other modules that a restored process loads
// by itself belong to it as well, since the skipped work may have written them; those of late modules are not there.
func (u *uses) reachable(contents []graphir.Content) map[target]bool {
	seen := map[target]bool{}
	chains := u.spec.Contiguous()
	reach := func(t target) {
		seen[t] = true
		if t.space == graphir.SpaceAlloc {
			for _, i := range chains[t.index] { // a pointer does not say how far its memory extends
				seen[target{t.space, i}] = true
			}
		}
	}
	for space, objects := range u.objects {
		for i, is := range objects {
			if is {
				reach(target{graphir.Space(space), uint32(i)})
			}
		}
	}
	for i, g := range u.spec.Globals {
		// mutant: variable that no graph reads
		if _, launched := u.modules[g.Module]; launched || !u.late[g.Module] {
			seen[target{graphir.SpaceGlobal, uint32(i)}] = true
		}
	}
	for _, c := range u.spec.Contents { // host memory that copies read
		for _, f := range c.Relocations {
			reach(target{f.Pointer.Space, f.Pointer.Index})
		}
	}
	for changed := true; changed; {
		changed = false
		for _, c := range contents {
			for _, f := range c.Relocations {
				if to := (target{f.Pointer.Space, f.Pointer.Index}); seen[target{c.Space, c.Alloc}] && !seen[to] {
					reach(to)
					changed = true
				}
			}
		}
	}
	return seen
}

// leadsTo returns the first node that reaches the object, through saved pointers too. If only embedded graphs do, the first of all.
func leadsTo(spec *graphir.Spec, contents []graphir.Content, object target) (at struct {
	use
	kind graphir.NodeType
}) {
	from := map[target]bool{object: true}
	for changed := true; changed; {
		changed = false
		for _, c := range contents {
			for _, f := range c.Relocations {
				if t := (target{c.Space, c.Alloc}); from[target{f.Pointer.Space, f.Pointer.Index}] && !from[t] {
					from[t], changed = true, true
				}
			}
		}
	}
	for i := range spec.Graphs {
		g := &spec.Graphs[i]
		if i == 0 {
			at.label = g.Label
		}
		for k := range g.Nodes {
			reaches := false
			g.Nodes[k].Pointers(func(p graphir.Pointer) { reaches = reaches || from[target{p.Space, p.Index}] })
			if reaches {
				at.use, at.kind = use{g.Label, k}, g.Nodes[k].Type
				return at
			}
		}
	}
	return at
}
