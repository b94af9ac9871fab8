// Command tokens makes one mistake in an artifact, which a restored engine then has to show in its tokens (make test-tokens).
//
//	tokens IN OUT MISTAKE WORDS
//
// In: an artifact, a kind of mistake, and words of the label of a graph that the engine replays. Out: OUT, the same artifact with the mistake, and a line that
// describes the change. Of several ranks the last one gets the mistake. All get those of keys and of collective calls: ranks whose calls differ would lose the
// device, and show no tokens. Fails: with status 1; with status 3 if the artifact has no place for the mistake.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
)

// mistakes has the mistakes by name. Each changes the Spec, and describes the change. "content:N" passes over N saved buffers.
var mistakes = map[string]func(s *graphir.Spec, graph int) (string, error){
	"kernel":  skipKernel,
	"pointer": shiftPointer,
	"content": flipByte,
	"key":     swapGraphs,
}

// errNothing means that the artifact has no place for the mistake.
var errNothing = errors.New("the artifact has nothing of that kind")

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: tokens IN OUT kernel|pointer|content|key|hole|holes WORDS")
		os.Exit(2)
	}
	what, err := spoil(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintf(os.Stderr, "tokens: %v\n", err)
		if errors.Is(err, errNothing) {
			os.Exit(3)
		}
		os.Exit(1)
	}
	fmt.Println(what)
}

func spoil(in, out, mistake, words string) (what string, err error) {
	file, err := artifacts.Open(in)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	a, err := artifacts.Read(in)
	if err != nil {
		return "", err
	}
	for i := range a.Directories {
		if a.Directories[i].Content, err = file.Directory(a.Directories[i]); err != nil {
			return "", err
		}
	}
	if what, err = change(a, mistake, words); err != nil {
		return "", fmt.Errorf("change %s: %w", in, err)
	}
	return what, artifacts.Write(out, a)
}

// change makes the mistake in the artifact.
func change(a *artifacts.Artifact, mistake, words string) (what string, err error) {
	label := func(g graphir.Graph) bool { return has(g.Label, words) }
	if of, ok := collective[mistake]; ok {
		return ofCalls(a, label, of)
	}
	mistake, number, _ := strings.Cut(mistake, ":")
	change, ok := mistakes[mistake]
	if over, err := strconv.Atoi(number); err == nil && mistake == "content" {
		change = func(s *graphir.Spec, graph int) (string, error) { return flipByteOf(s, graph, over) }
	}
	first := a.Ranks() - 1
	if mistake == "key" {
		first = 0
	}
	for r := first; r < a.Ranks() && err == nil; r++ {
		spec := a.Rank(r).Spec
		graph := slices.IndexFunc(spec.Graphs, label)
		if graph < 0 || !ok {
			return "", fmt.Errorf("no mistake %q, or no graph %q", mistake, words)
		}
		spec.Graphs = slices.Clone(spec.Graphs) // ranks may share graphs
		what, err = change(spec, graph)
	}
	return what, err
}

// has reports whether a label begins with the first of the words and has all of them. Releases of vLLM add fields to labels.
func has(label, words string) bool {
	fields, wanted := strings.Fields(label), strings.Fields(words)
	missing := func(word string) bool { return !slices.Contains(fields, word) }
	return len(fields) > 0 && len(wanted) > 0 && fields[0] == wanted[0] && !slices.ContainsFunc(wanted, missing)
}

// middle returns the index of the middle one of the kernel nodes that the condition holds for, and that multiply with a matrix of weights. Others may compute
// addresses, or write values that are no numbers: a mistake there ends the engine before a token shows it.
func middle(s *graphir.Spec, g *graphir.Graph, fits func(k *graphir.KernelNode) bool) (int, error) {
	matrix := func(r graphir.Relocation) bool { return inMatrix(s, r.Pointer) }
	var found []int
	for i := range g.Nodes {
		if k := g.Nodes[i].Kernel(); k != nil && fits(k) && slices.ContainsFunc(k.Relocations, matrix) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("graph %s has no such kernel: %w", g.Label, errNothing)
	}
	return found[len(found)/2], nil
}

// inMatrix reports whether a pointer leads into a matrix of weights.
func inMatrix(s *graphir.Spec, p graphir.Pointer) bool {
	matrix := func(t graphir.Tensor) bool { return t.Role == graphir.RoleWeight && len(t.Shape) > 1 }
	if p.Space == graphir.SpaceTensor {
		return matrix(s.Tensors[p.Index])
	}
	return slices.ContainsFunc(s.Tensors, func(t graphir.Tensor) bool {
		return matrix(t) && p.Space == t.At.Space && p.Index == t.At.Index && p.Offset >= t.At.Offset && p.Offset < t.At.Offset+t.Size
	})
}

// skipKernel puts an empty node in the place of a kernel, so that all edges stay.
func skipKernel(s *graphir.Spec, graph int) (string, error) {
	g := &s.Graphs[graph]
	at, err := middle(s, g, func(*graphir.KernelNode) bool { return true })
	if err != nil {
		return "", err
	}
	name := s.Kernels[g.Nodes[at].Kernel().Kernel].Name
	g.Nodes[at] = graphir.Node{Type: graphir.NodeEmpty}
	return fmt.Sprintf("graph %s: node %d, kernel %s, is skipped", g.Label, at, name), nil
}

// shift is less than a row of any matrix of the test's models.
const shift = 64

// shiftPointer moves a kernel's pointer to a matrix of weights, within the tensor or the allocation that it points to.
func shiftPointer(s *graphir.Spec, graph int) (string, error) {
	g := &s.Graphs[graph]
	first := func(k *graphir.KernelNode) int {
		return slices.IndexFunc(k.Relocations, func(r graphir.Relocation) bool {
			return inMatrix(s, r.Pointer) && r.Pointer.Offset+shift < size(s, r.Pointer)
		})
	}
	at, err := middle(s, g, func(k *graphir.KernelNode) bool { return first(k) >= 0 })
	if err != nil {
		return "", err
	}
	k := g.Nodes[at].Kernel()
	r := &k.Relocations[first(k)]
	r.Pointer.Offset += shift
	return fmt.Sprintf("graph %s: node %d, kernel %s, byte %d: the pointer is %d bytes further", g.Label, at, s.Kernels[k.Kernel].Name, r.Offset, shift), nil
}

// size returns the size of the object that a pointer leads into, 0 if it is neither a tensor nor an allocation.
func size(s *graphir.Spec, p graphir.Pointer) uint64 {
	switch p.Space {
	case graphir.SpaceAlloc:
		return s.Allocations[p.Index].Size
	case graphir.SpaceTensor:
		return s.Tensors[p.Index].Size
	}
	return 0
}

// flipByte inverts a byte of the first buffer of flipByteOf.
func flipByte(s *graphir.Spec, graph int) (string, error) { return flipByteOf(s, graph, 0) }

// flipByteOf inverts the first byte of a saved buffer that is saved as it stands. Kernels have pointers to the buffer: those of the graph, or those of other graphs of
// its kind, which steps of fewer requests replay. The largest buffer comes first: smaller ones may be scratch that kernels write before they read it. A buffer does not
// count if a graph itself clears the byte or copies to it, since the mistake would have no effect.
func flipByteOf(s *graphir.Spec, graph, over int) (string, error) {
	var found []*graphir.Content
	for i := range s.Contents {
		c := &s.Contents[i]
		if b := firstByte(c); b >= 0 && used(s, graph, c, uint64(b)) {
			found = append(found, c)
		}
	}
	if over >= len(found) {
		return "", fmt.Errorf("no saved contents that only kernels use: %w", errNothing)
	}
	slices.SortStableFunc(found, func(x, y *graphir.Content) int { return len(y.Data) - len(x.Data) })
	c, at := found[over], firstByte(found[over])
	c.Data = slices.Clone(c.Data) // others may share it
	c.Data[at] ^= 0xff
	return fmt.Sprintf("allocation %d byte %d: inverted", c.Alloc, c.Offset+uint64(at)), nil
}

// used reports whether kernels of graphs of a graph's kind have pointers to saved contents, and no graph writes the byte in another way.
func used(s *graphir.Spec, graph int, c *graphir.Content, at uint64) (found bool) {
	within := func(p graphir.Pointer) bool {
		return p.Space == c.Space && p.Index == c.Alloc && p.Offset >= c.Offset && p.Offset-c.Offset < uint64(len(c.Data))
	}
	for i := range s.Graphs {
		for k := range s.Graphs[i].Nodes {
			n := &s.Graphs[i].Nodes[k]
			written := false
			n.Writes(func(to graphir.Pointer, size uint64) {
				written = written || within(to) && to.Offset <= c.Offset+at && c.Offset+at-to.Offset < size
			})
			if written {
				return false
			}
			if kind(s.Graphs[i].Label) == kind(s.Graphs[graph].Label) && n.Kernel() != nil {
				n.Pointers(func(p graphir.Pointer) {
					found = found || within(p)
				})
			}
		}
	}
	return found
}

// firstByte returns the place of the first byte that neither a pointer nor an unstable range covers, -1 if there is none.
func firstByte(c *graphir.Content) int {
	covered := make([]bool, len(c.Data))
	for i := range c.Relocations {
		r := &c.Relocations[i]
		for b := r.Offset; b < r.Offset+r.Size(); b++ {
			covered[b] = true
		}
	}
	for _, u := range c.Unstable {
		for b := u.Offset; b < u.Offset+u.Size; b++ {
			covered[b] = true
		}
	}
	return slices.Index(covered, false)
}

// swapGraphs gives a graph and that of another batch each other's label. The order of labels stays: it would tell without a replay.
func swapGraphs(s *graphir.Spec, graph int) (string, error) {
	a := &s.Graphs[graph]
	other := slices.IndexFunc(s.Graphs, func(g graphir.Graph) bool { return g.Batch != a.Batch && kind(g.Label) == kind(a.Label) })
	if other < 0 {
		return "", fmt.Errorf("no graph %s of another batch: %w", kind(a.Label), errNothing)
	}
	b := &s.Graphs[other]
	*a, *b = *b, *a
	a.Label, b.Label = b.Label, a.Label
	a.Batch, b.Batch = b.Batch, a.Batch
	return fmt.Sprintf("graphs %s and %s have each other's label", a.Label, b.Label), nil
}

// kind returns the part of a label before the batch: whether the graph is a whole step, or which piece of one.
func kind(label string) string {
	kind, _, found := strings.Cut(label, " tokens=")
	if !found {
		return strings.TrimRight(kind, "0123456789") // of another engine, whose labels end with the batch
	}
	return kind
}
