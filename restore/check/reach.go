package check

import "medusa/graphir"

// reach is the memory that a graph's pointers lead to, directly or through saved memory, by object. Other memory
// is not hashed after the graph's replays. That would take most of a check's time: a model may have a thousand
// graphs that never use its KV cache.
type reach []uint64

func (r reach) has(object uint32) bool { return r[object/64]>>(object%64)&1 != 0 }

func (r reach) add(object uint32) { r[object/64] |= 1 << (object % 64) }

// reachOf returns the reach of each graph. A kernel reaches the variables of all modules without a pointer.
func reachOf(spec *graphir.Spec) ([]reach, error) {
	out := make([]reach, 0, len(spec.Graphs))
	chains := spec.Contiguous()
	saved := map[uint32][]uint32{} // the objects that pointers in an object's contents lead to
	for i := range spec.Contents {
		c := &spec.Contents[i]
		from := spec.Object(c.Space, c.Alloc)
		for _, f := range c.Relocations {
			saved[from] = append(saved[from], spec.Target(f.Pointer))
		}
	}
	err := spec.EachGraph(func(_ int, g *graphir.Graph) error {
		r := make(reach, (spec.Objects()+63)/64)
		var todo []uint32
		visit := func(object uint32) {
			if !r.has(object) {
				r.add(object)
				todo = append(todo, object)
			}
		}
		each := func(p graphir.Pointer) {
			visit(spec.Target(p))
			if p.Space == graphir.SpaceTensor { // its neighbours in a suballocated allocation
				visit(spec.Object(graphir.SpaceAlloc, spec.Tensors[p.Index].At.Index))
			}
		}
		var walk func(g *graphir.Graph)
		walk = func(g *graphir.Graph) {
			for i := range g.Nodes {
				g.Nodes[i].Pointers(each)
				if n := &g.Nodes[i]; n.Type == graphir.NodeChild {
					walk(&spec.Children[n.Target])
				}
			}
		}
		walk(g)
		for i := range spec.Globals {
			visit(spec.Object(graphir.SpaceGlobal, uint32(i)))
		}
		for len(todo) > 0 {
			object := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, to := range saved[object] {
				visit(to)
			}
			if int(object) < len(spec.Allocations) {
				for _, k := range chains[object] {
					visit(k)
				}
			}
		}
		// If a suballocated allocation can be reached, all of its tensors can.
		for i := range spec.Tensors {
			if at := spec.Tensors[i].At; at.Space == graphir.SpaceAlloc && r.has(at.Index) {
				r.add(spec.Object(graphir.SpaceTensor, uint32(i)))
			}
		}
		out = append(out, r)
		return nil
	})
	return out, err
}
