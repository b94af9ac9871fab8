package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// struct24 makes both runs with a kernel that takes one by-value struct of three words.
func struct24(t *testing.T, words func(seed byte, at place) [3]uint64) (*graphir.Spec, Paddings, error) {
	t.Helper()
	var runs [2]*recording.Recording
	for i, at := range []place{placeA, placeB} {
		tp := newTape(byte(i + 1))
		tp.function(0, trace.ModuleModule, "k", 24)
		tp.alloc(at(0)+uint64(i)*0x800, 4096)
		tp.alloc(at(1), 4096)
		tp.alloc(twin(tp.seed), 4096)
		tp.phase("capture")
		w := words(tp.seed, at)
		tp.capture("g", 1, tp.kernel(0, w[:]...))
		tp.phase("ready")
		runs[i] = tp.recording(t)
	}
	return Compile(runs[0], runs[1], nil)
}

func TestPaddingIsPresumedInsideStructsOnly(t *testing.T) {
	first := func(seed byte, at place) uint64 { return at(0) + uint64(seed-1)*0x800 }
	garbage := map[byte]uint64{1: 0x7ffdf72eb2f0, 2: 0x5560de04e0e0}
	tests := []struct {
		name string
		word func(seed byte, at place) uint64
		pads []byte // offsets inside of the word that are presumed
		err  string
	}{
		{"left by a stack", func(s byte, _ place) uint64 { return garbage[s] }, []byte{0, 1, 2, 3, 4, 5}, ""},
		{"four bytes and a gap", func(s byte, _ place) uint64 { return 7 | uint64(s)<<32 }, []byte{4}, ""},
		{"an address in one run", func(s byte, at place) uint64 {
			if s == 1 {
				return at(1) + 8
			}
			return 0x10
		}, []byte{0, 2, 5}, ""},
		{"a value beside half of an address", func(s byte, at place) uint64 {
			return at(0) + 0x900 // the first allocation lies elsewhere in record-b
		}, []byte{5}, ""},
		{"an old address, of another allocation in each run", func(s byte, at place) uint64 { return at(int(s)-1) + 0x900 }, []byte{2, 5}, ""},
		{"the same byte, lower half unmoved", func(s byte, _ place) uint64 { return twin(s) }, nil, "lower half"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec, pads, err := struct24(t, func(s byte, at place) [3]uint64 { return [3]uint64{first(s, at), tt.word(s, at), 3} })
			if tt.err != "" {
				var word *WordError
				if !errors.As(err, &word) || !strings.Contains(word.Reason, tt.err) {
					t.Fatalf("got %v, want an error about %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			k := onlyKernel(spec)
			if len(k.Relocations) != 1 || binary.LittleEndian.Uint64(k.Params[16:]) != 3 {
				t.Errorf("relocations %v, last word %#x: the words around are not what they were", k.Relocations, k.Params[16:])
			}
			if tt.pads == nil {
				return
			}
			var got []byte
			for _, p := range pads {
				for i := range p.Size {
					got = append(got, byte(p.Offset+i-8))
				}
			}
			if !bytes.Equal(got, tt.pads) {
				t.Errorf("presumed padding at %v of the word, want %v", got, tt.pads)
			}
			for _, i := range got {
				if k.Params[8+i] != 0 {
					t.Errorf("byte %d of the word is %#x, want 0", i, k.Params[8+i])
				}
			}
		})
	}
}

// twin is an allocation that lies a multiple of 4 GiB elsewhere in record-b.
func twin(seed byte) uint64 { return 0x7f1100000000 - uint64(seed)<<36 }

func TestPoisonThenSettle(t *testing.T) {
	spec, pads, err := struct24(t, func(s byte, at place) [3]uint64 { return [3]uint64{1, 0x7ffd00000000 + uint64(s), 3} })
	if err != nil || len(pads) != 1 {
		t.Fatalf("padding %v, %v", pads, err)
	}
	k := onlyKernel(spec)
	settled := bytes.Clone(k.Params)
	pads.Poison(nil)
	if k.Params[8] == 0 || !bytes.Equal(k.Params[9:], settled[9:]) || !bytes.Equal(k.Params[:8], settled[:8]) {
		t.Errorf("poisoned % x, settled % x", k.Params, settled)
	}
	pads.Settle(nil)
	if !bytes.Equal(k.Params, settled) {
		t.Errorf("settled again % x, want % x", k.Params, settled)
	}
}

// A single word that differs and leads nowhere is an address of memory that the recorder does not know, if it lies near
// the memory that it does know.
func TestParametersOfOneWord(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values [2]uint64
		ok     bool
	}{
		{"near device memory", [2]uint64{0x7f0008000000, 0x7e0008000000}, false},
		{"far from it", [2]uint64{0x20000000f, 0x2c3c2e10f}, true},
		{"near page-locked memory only", [2]uint64{0x2000300000, 0x2000301000}, true},
	} {
		var runs [2]*recording.Recording
		for i, at := range []place{placeA, placeB} {
			tp := newTape(byte(i + 1))
			tp.function(0, trace.ModuleModule, "k", 8)
			tp.alloc(at(0), 4096)
			tp.add(&trace.Alloc{ID: 1, Kind: trace.AllocPinned, Addr: 0x2000000000 + uint64(i)<<20, Size: 4096})
			tp.phase("capture")
			tp.capture("g", 1, tp.kernel(0, tt.values[i]))
			tp.phase("ready")
			runs[i] = tp.recording(t)
		}
		if _, pads, err := Compile(runs[0], runs[1], nil); (err == nil) != tt.ok || (len(pads) > 0) != tt.ok {
			t.Errorf("%s: padding %v, error %v", tt.name, pads, err)
		}
	}
}
