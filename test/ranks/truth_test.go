package main

import (
	"strings"
	"testing"
)

// A native worker: a kernel, a call of the communicator, a fill, each after the other.
const (
	nativeTruth = `alloc	0	0	device	0x1000	4096
alloc	1	1	device	0x8000	512
alloc	2	2	device	0xa000	512
instance	3	1	3	2	0	0x77
instance-node	4	1	0	kernel	mix	aa	1,1,1	8,1,1	0	0:0810000000000000,8:0080000000000000,16:07000000
instance-node	5	1	1	kernel	nccl_step	bb	1,1,1	128,1,1	0	0:00a0000000000000,8:4080000000000000,24:2000000000000000
instance-node	6	1	2	memset	0x8000	0	1	4	8	1
instance-edge	7	1	0	1	0,0,0
instance-edge	8	1	1	2	0,0,0
`
	nativePlaces = "tensor tokens 0x1000\ngraph decode 0x77\n"
)

// The same graph, restored elsewhere: its memory has moved, and the call is embedded.
const (
	restoredTruth = `alloc	0	0	device	0xf000	512
alloc	1	1	device	0x2000	4096
alloc	2	2	device	0xb000	512
instance	3	1	3	2	0	0x88
instance-node	4	1	0	kernel	mix	aa	1,1,1	8,1,1	0	0:0820000000000000,8:00f0000000000000,16:07000000
instance-node	5	1	1	child	1	0
instance-node	6	1	1/0	kernel	nccl_step	bb	1,1,1	128,1,1	0	0:00b0000000000000,8:40f0000000000000,24:2000000000000000
instance-node	7	1	2	memset	0xf000	0	1	4	8	1
instance-edge	8	1	0	1	0,0,0
instance-edge	9	1	1	2	0,0,0
`
	restoredPlaces = "tensor tokens 0x2000\ngraph decode 0x88\n"
)

// At recorded addresses, small buffers share a mapped page.
func TestPages(t *testing.T) {
	native, err := parseAccount(nativeTruth, nativePlaces)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Replace(restoredTruth, "device\t0xf000\t512", "vmm\t0xe000\t8192", 1)
	for name, tt := range map[string]struct{ old, new, want string }{
		"the same":      {"", "", ""},
		"another place": {"memset\t0xf000", "memset\t0xf008", "node 2"},
	} {
		restored, err := parseAccount(strings.Replace(page, tt.old, tt.new, 1), restoredPlaces)
		if err == nil {
			_, err = compareAccounts(native, restored)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// Each deviation of a restored rank from the native one is a difference. Other addresses are none.
func TestAccounts(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"the same":                {"", "", ""},
		"another kernel":          {"kernel\tmix", "kernel\tmax", "node 0"},
		"another module":          {"mix\taa", "mix\tab", "node 0"},
		"another grid":            {"aa\t1,1,1", "aa\t2,1,1", "node 0"},
		"another constant":        {"16:07", "16:08", "node 0"},
		"another offset":          {"0:0820", "0:1020", "leads to tokens+16, natively to tokens+8"},
		"another tensor":          {"0:0820", "0:08f0", "natively to tokens+8"},
		"other memory":            {"8:40f0", "8:40b0", "node 1/0: nccl_step: parameter at 8"},
		"no memory":               {"8:00f0", "8:0000", "leads to no memory+0"},
		"another communicator":    {"0:00b0", "0:0020", "node 1/0: nccl_step: parameter at 0"},
		"another count":           {"24:2000", "24:2100", "node 1/0: nccl_step: parameter at 24 is 0x21, natively 0x20"},
		"another fill":            {"0\t1\t4\t8\t1", "0\t1\t5\t8\t1", "node 2"},
		"a call left out":         {"child\t1\t0", "type 5", "node 1: no embedded graph of one node in the place of a collective call"},
		"a call of two":           {"child\t1\t0", "child\t2\t1", "node 1: no embedded graph of one node"},
		"another node":            {"instance-edge\t8", "instance-node\t9\t1\t3\ttype 5\ninstance-edge\t8", "1 nodes more than natively"},
		"another edge":            {"0\t1\t0,0,0", "0\t2\t0,0,0", "edges"},
		"data of an edge":         {"1\t2\t0,0,0", "1\t2\t1,0,1", "edges"},
		"flags":                   {"3\t2\t0\t0x88", "3\t2\t8\t0x88", "flags 8, natively 0"},
		"a graph that is nowhere": {"0x88", "0x99", "the device instantiated 0 of 1 graphs"},
	} {
		t.Run(name, func(t *testing.T) {
			native, err := parseAccount(nativeTruth, nativePlaces)
			if err != nil {
				t.Fatal(err)
			}
			var counts truthCounts
			restored, err := parseAccount(strings.Replace(restoredTruth, tt.old, tt.new, 1), restoredPlaces)
			if err == nil {
				counts, err = compareAccounts(native, restored)
			}
			if tt.want == "" {
				if want := (truthCounts{nodes: 3, pointers: 5, edges: 2, calls: 1}); err != nil || counts != want {
					t.Errorf("%+v, %v", counts, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
