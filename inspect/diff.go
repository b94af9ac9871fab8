package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
)

// Diff has all differences of two artifacts that affect a restored start. It leaves out dates, measured times and the record of
// verification, which differ between any two runs.
type Diff struct {
	Identity    []FactorDiff `json:"identity"`
	Values      []ValueDiff  `json:"values"` // values of the KV cache, triggers, saved buffers and other single values
	Kernels     TableDiff    `json:"kernels"`
	Allocations TableDiff    `json:"allocations"`
	Graphs      GraphsDiff   `json:"graphs"`
	Peers       []*Diff      `json:"peers,omitempty"` // ranks 1 and up that exist on both sides
}

// FactorDiff is a factor of the identity. A side without the factor is null.
type FactorDiff struct {
	Key   string  `json:"key"`
	A     *string `json:"a"`
	B     *string `json:"b"`
	Level string  `json:"level"` // fatal, relaxable or noted
}

// ValueDiff is a value that differs.
type ValueDiff struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// TableDiff lists the entries that only one side has, and those that differ.
type TableDiff struct {
	OnlyA   []string    `json:"only_a"`
	OnlyB   []string    `json:"only_b"`
	Changed []ValueDiff `json:"changed"`
}

// GraphsDiff pairs graphs by their labels.
type GraphsDiff struct {
	OnlyA   []string    `json:"only_a"`
	OnlyB   []string    `json:"only_b"`
	Changed []GraphDiff `json:"changed"`
}

// GraphDiff is one graph of both sides.
type GraphDiff struct {
	Label  string      `json:"label"`
	Values []ValueDiff `json:"values"` // counts and flags that differ
	Nodes  []NodeDiff  `json:"nodes"`  // compared one by one if both sides have the same number
	Edges  []string    `json:"edges"`  // edges of one side only: "-3>4" is A's, "+3>5" is B's
}

// NodeDiff has the differing values of a node.
type NodeDiff struct {
	Index  int         `json:"index"`
	Values []ValueDiff `json:"values"`
}

// Empty says whether there is no difference.
func (d *Diff) Empty() bool {
	return !slices.ContainsFunc(d.Peers, func(p *Diff) bool { return !p.Empty() }) && len(d.Identity)+len(d.Values) == 0 && d.Kernels.empty() && d.Allocations.empty() &&
		len(d.Graphs.OnlyA)+len(d.Graphs.OnlyB)+len(d.Graphs.Changed) == 0
}

func (t *TableDiff) empty() bool { return len(t.OnlyA)+len(t.OnlyB)+len(t.Changed) == 0 }

// Compare finds every difference between two artifacts.
func Compare(a, b *artifacts.Artifact) (*Diff, error) {
	d := &Diff{Identity: []FactorDiff{}, Values: []ValueDiff{}}
	for _, f := range artifacts.Diff(a.Identity, b.Identity) {
		row := FactorDiff{Key: f.Key, Level: f.Level.String()}
		if f.WantSet {
			row.A = &f.Want
		}
		if f.GotSet {
			row.B = &f.Got
		}
		d.Identity = append(d.Identity, row)
	}
	value := func(name string, x, y any) {
		if x, y := fmt.Sprint(x), fmt.Sprint(y); x != y {
			d.Values = append(d.Values, ValueDiff{name, x, y})
		}
	}
	value("ranks", a.Ranks(), b.Ranks())
	for i := range min(len(a.Peers), len(b.Peers)) {
		peer, err := Compare(a.Peers[i], b.Peers[i])
		if err != nil {
			return nil, err
		}
		d.Peers = append(d.Peers, peer)
	}
	value("KV cache bytes", a.KV.KVBytes, b.KV.KVBytes)
	value("KV cache's least bytes", a.KV.Least, b.KV.Least)
	value("KV cache's block bytes", a.KV.Block, b.KV.Block)
	value("workspace bytes", a.KV.Workspace, b.KV.Workspace)
	value("triggers", triggers(a.Spec), triggers(b.Spec))
	value("allocation sequence", steps(a.Spec), steps(b.Spec))
	d.tables(a.Spec, b.Spec)
	d.contents(a.Spec, b.Spec)
	d.directories(a.Directories, b.Directories)
	d.Kernels = pair(kernelEntries(a.Spec), kernelEntries(b.Spec))
	d.Allocations = pair(allocationEntries(a.Spec), allocationEntries(b.Spec))
	var err error
	d.Graphs, err = compareGraphs(a.Spec, b.Spec)
	return d, err
}

func triggers(s *graphir.Spec) string {
	var out []string
	for _, t := range s.Triggers {
		for _, k := range t.Kernels {
			out = append(out, fmt.Sprintf("batch %d loads %s", t.Batch, s.Kernels[k].Name))
		}
	}
	return fmt.Sprint(out)
}

// steps summarizes the sequence. The allocations show which entries differ.
func steps(s *graphir.Spec) string {
	frees, hash := 0, uint64(14695981039346656037) // FNV-1a over the order of frees
	for i, step := range graphir.OrderFrees(s.Sequence) {
		if step.Free {
			frees++
			hash = (hash ^ uint64(i)<<32 ^ uint64(step.Alloc)) * 1099511628211
		}
	}
	return fmt.Sprintf("%d steps, %d frees, order %016x", len(s.Sequence), frees, hash)
}

// tables compares the tables whose entries have no names, each as a whole.
func (d *Diff) tables(a, b *graphir.Spec) {
	for _, t := range []struct {
		name string
		a, b []string
	}{
		{"modules", texts(a.Modules), texts(b.Modules)},
		{"globals", texts(a.Globals), texts(b.Globals)},
		{"host buffers", texts(a.HostBuffers), texts(b.HostBuffers)},
		{"events", texts(a.Events), texts(b.Events)},
		{"tensor maps", texts(a.TensorMaps), texts(b.TensorMaps)},
		{"tensors", texts(a.Tensors), texts(b.Tensors)},
		{"notes", texts(a.Notes), texts(b.Notes)},
	} {
		if !slices.Equal(t.a, t.b) {
			sum := func(entries []string) string {
				return fmt.Sprintf("%d, %s", len(entries), digest([]byte(strings.Join(entries, "\n"))))
			}
			d.Values = append(d.Values, ValueDiff{t.name, sum(t.a), sum(t.b)})
		}
	}
}

// texts formats entries. They contain no addresses.
func texts[T any](entries []T) []string {
	var out []string
	for i := range entries {
		out = append(out, fmt.Sprintf("%v", entries[i]))
	}
	return out
}

func (d *Diff) contents(a, b *graphir.Spec) {
	where := func(c *graphir.Content) string {
		return fmt.Sprintf("saved buffer %s", graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space})
	}
	find := func(s *graphir.Spec, name string) *graphir.Content {
		for i := range s.Contents {
			if where(&s.Contents[i]) == name {
				return &s.Contents[i]
			}
		}
		return nil
	}
	for i := range a.Contents {
		x := &a.Contents[i]
		y := find(b, where(x))
		switch {
		case y == nil:
			d.Values = append(d.Values, ValueDiff{where(x), fmt.Sprintf("%d bytes", len(x.Data)), "absent"})
		case len(x.Data) != len(y.Data):
			d.Values = append(d.Values, ValueDiff{where(x), fmt.Sprintf("%d bytes", len(x.Data)), fmt.Sprintf("%d bytes", len(y.Data))})
		case !bytes.Equal(x.Data, y.Data):
			d.Values = append(d.Values, ValueDiff{where(x), digest(x.Data), digest(y.Data)})
		case fmt.Sprint(x.Relocations, x.Unstable) != fmt.Sprint(y.Relocations, y.Unstable):
			d.Values = append(d.Values, ValueDiff{where(x) + ", pointers", fmt.Sprint(x.Relocations, x.Unstable), fmt.Sprint(y.Relocations, y.Unstable)})
		}
	}
	for i := range b.Contents {
		if y := &b.Contents[i]; find(a, where(y)) == nil {
			d.Values = append(d.Values, ValueDiff{where(y), "absent", fmt.Sprintf("%d bytes", len(y.Data))})
		}
	}
}

func (d *Diff) directories(a, b []artifacts.Directory) {
	text := func(ls []artifacts.Directory, name string) string {
		for _, l := range ls {
			if l.Name == name {
				return fmt.Sprintf("%d bytes, sha256:%x, at %s", l.Size, l.SHA256[:8], l.Path)
			}
		}
		return "absent"
	}
	var names []string
	for _, l := range slices.Concat(a, b) {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if x, y := text(a, name), text(b, name); x != y {
			d.Values = append(d.Values, ValueDiff{"directory " + name, x, y})
		}
	}
}

// entry is a row of a table: its name, and all its values as text.
type entry struct{ name, text string }

func kernelEntries(s *graphir.Spec) []entry {
	var out []entry
	for _, k := range s.Kernels {
		m := &s.Modules[k.Module]
		image := fmt.Sprintf("%s module of %d functions", m.Kind, len(m.Functions))
		if m.ImageSHA256 != [32]byte{} {
			image = fmt.Sprintf("%s module sha256:%x", m.Kind, m.ImageSHA256[:8])
		}
		if m.DSO != "" {
			image += fmt.Sprintf(" in %s %s+%d", m.DSO, m.BuildID, m.DSOOffset)
		}
		out = append(out, entry{k.Name, fmt.Sprintf("%s, parameters %v, attributes %v", image, k.Params, k.Attrs)})
	}
	slices.SortStableFunc(out, func(x, y entry) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.text, y.text)) })
	return unique(out)
}

func allocationEntries(s *graphir.Spec) []entry {
	var out []entry
	for i, a := range s.Allocations {
		state := "live"
		if !a.Live {
			state = "freed"
		}
		out = append(out, entry{fmt.Sprintf("alloc#%d", i), fmt.Sprintf("%s %s of %d bytes, %s", a.Owner, a.Kind, a.Size, state)})
	}
	return out
}

// unique numbers entries with the same name: kernels of two modules may share one.
func unique(entries []entry) []entry {
	seen := map[string]int{}
	for i := range entries {
		seen[entries[i].name]++
		if n := seen[entries[i].name]; n > 1 {
			entries[i].name += fmt.Sprintf(" (%d)", n)
		}
	}
	return entries
}

func pair(a, b []entry) TableDiff {
	out := TableDiff{OnlyA: []string{}, OnlyB: []string{}, Changed: []ValueDiff{}}
	in := func(entries []entry) map[string]string {
		m := make(map[string]string, len(entries))
		for _, e := range entries {
			m[e.name] = e.text
		}
		return m
	}
	inA, inB := in(a), in(b)
	for _, e := range a {
		if other, ok := inB[e.name]; !ok {
			out.OnlyA = append(out.OnlyA, e.name)
		} else if other != e.text {
			out.Changed = append(out.Changed, ValueDiff{e.name, e.text, other})
		}
	}
	for _, e := range b {
		if _, ok := inA[e.name]; !ok {
			out.OnlyB = append(out.OnlyB, e.name)
		}
	}
	return out
}
