package mutate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"medusa/interpose/trace"
	"medusa/test/tracewriter"
)

// Crafted is the recording of a graph with one launch, made so that a compiler could misread an address in it. The meaning of its
// words is known, since they were made here.
type Crafted struct {
	Name  string
	Sound bool // a driver could have made it: it is not to be refused
	// Words are all eight-byte words of the launch, and of the saved buffer if there is one.
	Words []Word
	make  func(*craft)
}

// Word is one word of a crafted recording.
type Word struct {
	Saved  bool   // in the saved buffer, else in the launch's parameters
	Offset uint64 // from the first byte of the buffer or of the parameters
	// Address says that the word is an address: of byte Byte of allocation Alloc.
	Address bool
	Alloc   uint32
	Byte    uint64
}

// nowhere is the Byte of an address that leads to different bytes in the two runs: no pointer is right.
const nowhere = math.MaxUint64

// Addresses of the recordings: the allocations of both runs lie in different regions, but for common, which lies in memory of both.
const (
	page    = 4096
	common  = 0x7e80_0000_0000
	far     = 5<<30 + 24
	farther = 6<<30 + 64
)

var param = trace.FunctionParam{Size: 8}

// CraftedRecordings are one for each way in which a wrong pointer was accepted. A saved buffer of more than 4 GiB is not among
// them, since its trace would have as many bytes: materialize.TestLargeBuffersAreSavedInPieces cuts smaller ones in its place.
var CraftedRecordings = []Crafted{
	{"a pointer", true, []Word{{Address: true, Byte: 64}}, func(c *craft) { // the others are refused because of their change to it
		c.launch([]trace.FunctionParam{param}, c.alloc(0, page)+64)
	}},
	{"an allocation that wraps around", false, []Word{{Address: true, Byte: nowhere}}, func(c *craft) {
		c.allocAt(common-c.shift(), 1<<20)
		c.allocAt(math.MaxUint64-page+1, 2*page)
		c.launch([]trace.FunctionParam{param}, common)
	}},
	{"a variable that wraps around", false, []Word{{Address: true, Byte: nowhere}}, func(c *craft) {
		c.allocAt(common-c.shift(), 1<<20)
		c.add(&trace.Global{Name: "v", Addr: math.MaxUint64, Size: 2})
		c.launch([]trace.FunctionParam{param}, common)
	}},
	{"two allocations inside of a third", false, []Word{{Address: true, Byte: nowhere}}, func(c *craft) {
		at := common - 64*c.shift()
		c.allocAt(at, 64<<20)
		c.allocAt(at+page, 64)
		c.allocAt(at+2*page, 64)
		c.launch([]trace.FunctionParam{param}, common)
	}},
	{"variables inside of an allocation", false, []Word{{Address: true, Byte: nowhere}}, func(c *craft) {
		at := common - 64*c.shift()
		c.allocAt(at, 64<<20)
		c.add(&trace.Global{Name: "v", Addr: at + page, Size: 8}, &trace.Global{Name: "w", Addr: at + 2*page, Size: 8})
		c.launch([]trace.FunctionParam{param}, common)
	}},
	{"a function without a layout", false, []Word{{Address: true, Byte: 8}}, func(c *craft) {
		c.launch(nil, c.alloc(0, page)+8)
	}},
	{"a word behind the last parameter", false, []Word{{Address: true}, {Offset: 8, Address: true, Byte: 16}}, func(c *craft) {
		at := c.alloc(0, page)
		c.launch([]trace.FunctionParam{param}, at, at+16)
	}},
	{"a word between two parameters", false, []Word{{Address: true}, {Offset: 8, Address: true, Byte: 16}, {Offset: 16, Address: true, Byte: 24}},
		func(c *craft) {
			at := c.alloc(0, page)
			c.launch([]trace.FunctionParam{param, {Offset: 16, Size: 8}}, at, at+16, at+24)
		}},
	{"pointers beyond 4 GiB of their memory", true, []Word{{Address: true, Byte: far}, {Offset: 8, Address: true, Alloc: 1, Byte: farther},
		{Saved: true, Offset: farther, Address: true, Byte: far + 8}, {Saved: true, Offset: farther + 8}}, func(c *craft) {
		at := c.alloc(0, 8<<30)
		c.phase("capture")
		buffer := c.alloc(1, 8<<30)
		c.launch([]trace.FunctionParam{param, {Offset: 8, Size: 8}}, at+far, buffer+farther)
		c.saved = &trace.Content{Alloc: 1, Offset: farther, Data: words(at+far+8, Plain)}
	}},
}

// Plain is the value of a word that holds no address.
const Plain = 7

// Pair returns the traces of both runs. The seed moves the memory.
func (c *Crafted) Pair(seed uint64) (pair [2][]byte, err error) {
	for run := range pair {
		t := &craft{run: uint64(run), base: rand.New(rand.NewPCG(seed, 6)).Uint64N(1<<12) * page}
		t.add(&trace.Process{Protocol: 1, PID: 1}, &trace.Device{Name: "Simulated GPU", Driver: 12080, TotalMem: 1 << 40})
		image := sha256.Sum256(nil)
		t.add(&trace.Module{Kind: trace.ModuleModule, Handle: 1, SHA256: image[:]}, &trace.Names{Names: []string{"k"}})
		c.make(t)
		t.phase("ready")
		if t.saved != nil {
			t.add(t.saved)
		}
		var buffer bytes.Buffer
		w := tracewriter.New(&buffer)
		for _, rec := range t.records {
			w.Write(rec)
		}
		if err := w.End(); err != nil {
			return pair, err
		}
		pair[run] = buffer.Bytes()
	}
	return pair, nil
}

// craft is one run of a crafted recording in the making.
type craft struct {
	run, base uint64
	records   []trace.Record
	allocs    uint32
	capturing bool
	saved     *trace.Content
}

func (c *craft) add(records ...trace.Record) { c.records = append(c.records, records...) }

func (c *craft) phase(name string) {
	c.capturing = c.capturing || name == "capture"
	c.add(&trace.Phase{Name: name})
}

// alloc makes an allocation at an address that no other run has.
func (c *craft) alloc(i, size uint64) uint64 {
	return c.allocAt(0x7000_0000_0000-c.run<<44+i<<36+c.base, size)
}

func (c *craft) allocAt(addr, size uint64) uint64 {
	c.add(&trace.Alloc{ID: c.allocs, Kind: trace.AllocDevice, Addr: addr, Size: size})
	c.allocs++
	return addr
}

// shift is a distance that differs between the runs, and is less than a MiB.
func (c *craft) shift() uint64 { return (1 + c.run + c.base>>12%16*4) * page }

// launch captures one kernel with this layout, which is given these words.
func (c *craft) launch(layout []trace.FunctionParam, values ...uint64) {
	c.add(&trace.Function{Name: "k", Params: layout})
	if !c.capturing {
		c.phase("capture")
	}
	c.add(&trace.Graph{Handle: 7, Label: "g", Batch: 1, Nodes: 1},
		&trace.Kernel{Node: 1 + c.run<<32, Grid: []uint32{1, 1, 1}, Block: []uint32{32, 1, 1}, Params: words(values...)},
		&trace.Exec{Handle: 9})
}

func words(values ...uint64) (data []byte) {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}
