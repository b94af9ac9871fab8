package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// account is the simulated GPU's own account of one worker (simgpu/README.md, Ground truth), at the places that the worker has named. It has no data that
// Medusa recorded or derived.
type account struct {
	graphs  map[string]*instance // by label
	tensors map[string]uint64
}

// instance is a graph as it was instantiated.
type instance struct {
	flags string
	nodes []node
	edges []string // "from to data", sorted
	live  []memory // when it was instantiated
}

// node is one of a graph, or of a graph that one of its nodes embeds.
type node struct {
	at, kind string
	facts    []string          // equal as they stand
	words    map[uint64]uint64 // by offset of the parameter: values of 8 bytes, which may be addresses
	rest     string            // all other parameters
}

type memory struct {
	base, size uint64
	kind       string
}

func (m memory) has(addr uint64) bool { return addr >= m.base && addr-m.base < m.size }

// mapped is the kind of memory that is mapped to reserved addresses.
const mapped = "vmm"

// communicator is the kernel that the stand-in for NCCL launches for a call.
const communicator = "nccl_step"

func (n *node) name() string {
	if n.kind == "kernel" {
		return n.facts[0]
	}
	return n.kind
}

func (n *node) call() bool { return n.kind == "kernel" && n.facts[0] == communicator }

// readAccount reads the files of one rank.
func readAccount(path string) (*account, error) {
	places, err := os.ReadFile(path + ".places")
	if err != nil {
		return nil, err
	}
	truth, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseAccount(string(truth), string(places))
}

func parseAccount(truth, places string) (*account, error) {
	a := &account{map[string]*instance{}, map[string]uint64{}}
	labels := map[string]string{}
	for line := range strings.Lines(places) {
		f := strings.Fields(line)
		if f[0] == "tensor" {
			a.tensors[f[1]] = number(f[2])
		} else {
			labels[f[2]] = f[1]
		}
	}
	var live []memory
	var now *instance
	lines := bufio.NewScanner(strings.NewReader(truth))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		switch f[0] {
		case "alloc":
			live = append(slices.Clip(live), memory{number(f[4]), number(f[5]), f[3]})
		case "free":
			base := number(f[3])
			live = slices.DeleteFunc(slices.Clone(live), func(m memory) bool { return m.base == base })
		case "instance":
			now = &instance{flags: f[5], live: live}
			if label := labels[f[6]]; label != "" {
				a.graphs[label] = now // an address may have had other graphs before
			}
		case "instance-node":
			n, err := parseNode(f[3], f[4:])
			if err != nil {
				return nil, err
			}
			now.nodes = append(now.nodes, n)
		case "instance-edge":
			now.edges = append(now.edges, strings.Join(f[3:], " "))
		}
	}
	if len(a.graphs) != len(labels) {
		return nil, fmt.Errorf("the device instantiated %d of %d graphs", len(a.graphs), len(labels))
	}
	return a, lines.Err()
}

func parseNode(at string, f []string) (node, error) {
	n := node{at: at, kind: f[0], words: map[uint64]uint64{}}
	switch n.kind {
	case "kernel":
	case "memset":
		n.facts, n.words[0] = f[2:], number(f[1])
		return n, nil
	case "memcpy":
		n.facts, n.words[0], n.words[8] = append(f[2:3:3], f[4:]...), number(f[1]), number(f[3])
		return n, nil
	default:
		n.facts = f[1:]
		return n, nil
	}
	n.facts = append(slices.Clone(f[1:6]), f[7:]...)
	for p := range strings.SplitSeq(f[6], ",") {
		offset, text, _ := strings.Cut(p, ":")
		data, err := hex.DecodeString(text)
		if err != nil {
			return n, fmt.Errorf("parameter at %s of node %s: %w", offset, at, err)
		}
		if from := number(offset); len(data) == 8 && from%8 == 0 {
			n.words[from] = binary.LittleEndian.Uint64(data)
		} else {
			n.rest += p + " "
		}
	}
	return n, nil
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 0, 64)
	return n
}

// place names the memory in which an address lies: the tensor that begins there, or the base of the allocation.
func (a *account) place(live []memory, addr uint64) (name string, offset uint64, ok bool) {
	i := slices.IndexFunc(live, func(m memory) bool { return m.has(addr) })
	if i < 0 {
		return "", 0, false
	}
	for name, at := range a.tensors {
		if at == live[i].base {
			return name, addr - at, true
		}
	}
	return fmt.Sprintf("%s %#x", live[i].kind, live[i].base), addr - live[i].base, true
}

// comparison holds a restored rank against the native one.
type comparison struct {
	native, restored *account
	pairs            map[string]string // of memory without a name, in both directions
	counts           truthCounts
}

// truthCounts counts compared objects.
type truthCounts struct{ nodes, pointers, edges, calls int }

func (c *truthCounts) add(o truthCounts) {
	c.nodes, c.pointers, c.edges, c.calls = c.nodes+o.nodes, c.pointers+o.pointers, c.edges+o.edges, c.calls+o.calls
}

// compareAccounts returns the numbers of compared objects, or the first difference. A call of the communicator is, in a restored graph, a graph embedded in
// the place of the native nodes; all else is equal node by node.
func compareAccounts(native, restored *account) (truthCounts, error) {
	c := &comparison{native, restored, map[string]string{}, truthCounts{}}
	if len(native.graphs) != len(restored.graphs) || len(native.graphs) == 0 {
		return c.counts, fmt.Errorf("%d graphs, natively %d", len(restored.graphs), len(native.graphs))
	}
	for label, want := range native.graphs {
		got := restored.graphs[label]
		if got == nil {
			return c.counts, fmt.Errorf("graph %s: not restored", label)
		}
		if err := c.graph(want, got); err != nil {
			return c.counts, fmt.Errorf("graph %s: %w", label, err)
		}
	}
	return c.counts, nil
}

func (c *comparison) graph(want, got *instance) error {
	if want.flags != got.flags {
		return fmt.Errorf("flags %s, natively %s", got.flags, want.flags)
	}
	nodes := map[string]*node{}
	for i := range got.nodes {
		nodes[got.nodes[i].at] = &got.nodes[i]
	}
	for i := range want.nodes {
		n := &want.nodes[i]
		at := n.at
		if n.call() {
			if hole := nodes[at]; hole == nil || !slices.Equal(hole.facts, []string{"1", "0"}) || hole.kind != "child" {
				return fmt.Errorf("node %s: no embedded graph of one node in the place of a collective call", at)
			}
			delete(nodes, at)
			at += "/0"
			c.counts.calls++
		}
		other := nodes[at]
		if other == nil {
			return fmt.Errorf("node %s: missing", at)
		}
		delete(nodes, at)
		if err := c.node(n, want.live, other, got.live); err != nil {
			return fmt.Errorf("node %s: %w", at, err)
		}
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%d nodes more than natively", len(nodes))
	}
	slices.Sort(want.edges)
	slices.Sort(got.edges)
	if !slices.Equal(want.edges, got.edges) {
		return fmt.Errorf("edges %q, natively %q", got.edges, want.edges)
	}
	c.counts.nodes += len(want.nodes)
	c.counts.edges += len(want.edges)
	return nil
}

func (c *comparison) node(want *node, wantLive []memory, got *node, gotLive []memory) error {
	if want.kind != got.kind || !slices.Equal(want.facts, got.facts) || want.rest != got.rest || len(want.words) != len(got.words) {
		return fmt.Errorf("%s %q %s, natively %s %q %s", got.kind, got.facts, got.rest, want.kind, want.facts, want.rest)
	}
	for offset, word := range want.words {
		value, exists := got.words[offset]
		name, at, isAddress := c.native.place(wantLive, word)
		if !isAddress {
			if !exists || value != word {
				return fmt.Errorf("%s: parameter at %d is %#x, natively %#x", got.name(), offset, value, word)
			}
			continue
		}
		if other, otherAt, leads := c.restored.place(gotLive, value); !leads || !c.same(name, at, other, otherAt, value, gotLive) {
			return fmt.Errorf("%s: parameter at %d leads to %s+%d, natively to %s+%d", got.name(), offset, cmp.Or(other, "no memory"), otherAt, name, at)
		}
		c.counts.pointers++
	}
	return nil
}

// same says whether a restored address leads where the native one does: tensors are known by name, and other memory is each other's partner wherever it occurs. At
// recorded addresses, small buffers share a mapped page, which is one allocation for the device: the restored buffer then begins as far before the address as the native one.
func (c *comparison) same(native string, at uint64, restored string, otherAt, value uint64, live []memory) bool {
	begin := value - at
	_, named := c.native.tensors[native]
	switch {
	case named:
		return c.restored.tensors[native] == begin
	case slices.ContainsFunc(live, func(m memory) bool { return m.kind == mapped && m.has(value) }):
		return !slices.Contains(slices.Collect(maps.Values(c.restored.tensors)), begin) && c.pair(native, fmt.Sprintf("%#x", begin))
	}
	_, named = c.restored.tensors[restored]
	return !named && at == otherAt && c.pair(native, restored)
}

// pair says whether each of two is the other's partner.
func (c *comparison) pair(native, restored string) bool {
	there, back := "native "+native, "restored "+restored
	if c.pairs[there] == "" && c.pairs[back] == "" {
		c.pairs[there], c.pairs[back] = restored, native
	}
	return c.pairs[there] == restored && c.pairs[back] == native
}
