package main

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
)

// mayDiffer are the fields in which an artifact that was made alone may differ from one that all ranks made: times; free memory, of which a communicator
// takes some; addresses, which only the latter has (materialize/region.go); the kernels that a triggering layer launches, of which a communicator's count; and the hashes of graphs with collective calls, whose results have this rank's data in place of the others'.
var mayDiffer = regexp.MustCompile(`^(Created|Stages\[\d+\]\.Stages\[\d+\]\.Seconds|Spec\.Triggers\[\d+\]\.Launches|Spec\.Region|Spec\.Allocations\[\d+\]\.Address|` +
	`Verification\.(Alone|NativeFree|RestoredFree|Graphs\[\d+\]\.(Digest|Canary)))(\.|$)`)

// mustDiffer are among them: otherwise the artifacts would be of one kind.
var mustDiffer = []string{"Verification.Alone", "Verification.Graphs[].Canary", "Spec.Region.Base", "Spec.Allocations[].Address"}

// compareParts compares the artifacts field by field, rank by rank: allocations, kernels, nodes, edges, pointers, calls and contents are equal.
func compareParts(together, alone string) error {
	a, err := artifacts.Read(together)
	if err != nil {
		return err
	}
	b, err := artifacts.Read(alone)
	if err != nil {
		return err
	}
	if a.Ranks() != b.Ranks() {
		return fmt.Errorf("compare artifacts: %d ranks together, %d alone", a.Ranks(), b.Ranks())
	}
	var all []string
	remains := uint64(0)
	for r := range a.Ranks() {
		first, err := loose(a.Rank(r))
		if err != nil {
			return err
		}
		second, err := loose(b.Rank(r))
		if err != nil {
			return err
		}
		own := equateRemains(first.Spec, second.Spec)
		remains += own
		equateCompared(first.Verification.Graphs, second.Verification.Graphs, own)
		w := walk{seen: map[[2]uintptr]bool{}}
		w.compare("", reflect.ValueOf(*first), reflect.ValueOf(*second))
		for _, path := range w.differ {
			if !mayDiffer.MatchString(path) {
				return fmt.Errorf("compare artifacts: rank %d: %s differs", r, path)
			}
			if path = index.ReplaceAllString(path, "[]"); !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	for _, path := range mustDiffer {
		if !slices.Contains(all, path) {
			return fmt.Errorf("compare artifacts: %s is the same", path)
		}
	}
	slices.Sort(all)
	fmt.Printf("%d ranks: made alone as together, except for %d bytes of saved memory that no graph reads first, and %s\n", a.Ranks(), remains, strings.Join(all, ", "))
	return nil
}

var index = regexp.MustCompile(`\[\d+\]`)

// loose is a part without its peers, with the nodes and edges of all graphs.
func loose(part *artifacts.Artifact) (*artifacts.Artifact, error) {
	own := *part
	spec := *part.Spec
	own.Peers, own.Spec = nil, &spec
	spec.Graphs = nil
	err := part.Spec.EachGraph(func(_ int, g *graphir.Graph) error {
		graph := *g
		graph.Nodes, graph.Edges = slices.Clone(g.Nodes), slices.Clone(g.Edges)
		spec.Graphs = append(spec.Graphs, graph)
		return nil
	})
	spec.Rows = nil
	return &own, err
}

// equateRemains makes saved bytes equal if they differed between the two recordings that were made alone: remains of calls outside of captures. Verification has had
// garbage there. It returns their number.
func equateRemains(together, alone *graphir.Spec) (bytes uint64) {
	together.Contents, alone.Contents = slices.Clone(together.Contents), slices.Clone(alone.Contents)
	for i := range min(len(together.Contents), len(alone.Contents)) {
		a, b := &together.Contents[i], &alone.Contents[i]
		if len(a.Data) != len(b.Data) {
			continue
		}
		a.Data, b.Data = slices.Clone(a.Data), slices.Clone(b.Data)
		for _, u := range b.Unstable {
			clear(a.Data[u.Offset : u.Offset+u.Size])
			clear(b.Data[u.Offset : u.Offset+u.Size])
			bytes += u.Size
		}
		a.Unstable = b.Unstable
	}
	return bytes
}

// equateCompared makes numbers of compared bytes equal if no more are missing than remains have: a replay with garbage there is not compared. Memory at recorded
// addresses begins with equal bytes in both recordings, so those that no run has written are no remains there.
func equateCompared(together, alone []artifacts.GraphCheck, remains uint64) {
	for i := range min(len(together), len(alone)) {
		if together[i].BytesCompared-alone[i].BytesCompared <= remains {
			alone[i].BytesCompared = together[i].BytesCompared
		}
	}
}

// walk compares two values of one type, unexported fields included, and collects the paths that differ.
type walk struct {
	seen   map[[2]uintptr]bool // pairs of pointers
	differ []string
}

func (w *walk) compare(path string, a, b reflect.Value) {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		w.differ = append(w.differ, path)
		return
	}
	switch a.Kind() {
	case reflect.Invalid:
	case reflect.Struct:
		for i := range a.NumField() {
			w.compare(strings.TrimPrefix(path+"."+a.Type().Field(i).Name, "."), a.Field(i), b.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			w.differ = append(w.differ, path)
			return
		}
		for i := range a.Len() {
			w.compare(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Interface:
		w.compare(path, a.Elem(), b.Elem())
	case reflect.Pointer:
		pair := [2]uintptr{a.Pointer(), b.Pointer()}
		if a.IsNil() == b.IsNil() && w.seen[pair] {
			return
		}
		w.seen[pair] = true
		w.compare(path, a.Elem(), b.Elem())
	default:
		if !a.Equal(b) {
			w.differ = append(w.differ, path)
		}
	}
}
