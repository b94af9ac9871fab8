package devicehash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/test/enginekit"
	"medusa/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// onDevice makes a context current.
func onDevice(t testing.TB) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	_, _, err := enginekit.Open()
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The device gives the host's hashes, for whole and partial chunks, with and without gaps between them, whether or not
// words that look like addresses are such.
func TestDeviceHashesAsTheHost(t *testing.T) {
	onDevice(t)
	objects := digest.Objects{{Base: 0x7000000000, Size: 4096, ID: 3}, {Base: 0x7000001000, Size: 512, ID: 9}, {Base: 0x7100000000, Size: 1 << 33, ID: 4}}
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 5*digest.ChunkBytes+43)
	for i := 0; i+8 <= len(data); i += 8 {
		word := r.Uint64()
		switch r.IntN(8) {
		case 0:
			o := objects[r.IntN(len(objects))]
			word = o.Base + r.Uint64N(o.Size+1)
		case 1:
			word = 0x7000000000 - 2 + r.Uint64N(4)
		case 2:
			word = 0x7000001200 - 2 + r.Uint64N(4)
		case 3:
			word = 0
		}
		binary.LittleEndian.PutUint64(data[i:], word)
	}
	at, err := cuda.MemAlloc(uint64(len(data)))
	must(t, err)
	defer at.Free()
	must(t, cuda.CopyToDevice(at, data))
	h, err := New(objects, 64)
	must(t, err)
	defer h.Close()
	var ranges []Range
	for _, size := range []uint64{1, 7, 8, 4096, 8*threads - 1, digest.ChunkBytes, digest.ChunkBytes + 1, uint64(len(data) - 24)} {
		for i, stride := range []uint64{1, 2, 3} {
			chunk := []uint64{digest.ChunkBytes, 4096 + 8*size, digest.ChunkBytes}[i]
			ranges = append(ranges, Range{uint64(at) + 24, size, stride, chunk, size%2 == 0})
		}
	}
	got, err := h.Hash(ranges)
	must(t, err)
	for i, r := range ranges {
		var want []byte
		buf := bytes.Clone(data[24 : 24+r.Size])
		if r.Pointers {
			objects.Canonicalise(buf, 24)
		}
		for from := uint64(0); from < r.Size; from += r.Stride * r.Chunk {
			want = append(want, digest.Sum(buf[from:min(r.Size, from+r.Chunk)])...)
		}
		if !bytes.Equal(got[i], want) {
			t.Errorf("%+v: device %x, host %x", r, got[i], want)
		}
	}
}

// Memory that cannot be hashed is an error, and no kernel is launched.
func TestHashRefuses(t *testing.T) {
	onDevice(t)
	h, err := New(nil, 1)
	must(t, err)
	defer h.Close()
	for _, r := range []Range{{Addr: 4, Size: 8, Stride: 1, Chunk: 8}, {Addr: 8, Size: 8, Stride: 1, Chunk: 4}, {Addr: 8, Size: 9 * digest.ChunkBytes, Stride: 1, Chunk: digest.ChunkBytes}} {
		if _, err := h.Hash([]Range{r}); err == nil {
			t.Errorf("hash %+v: no error", r)
		}
	}
}

// Numbers that are NaN or infinite are found in the chunk that holds them, in each type, with any numbers beside them.
func TestNotFinite(t *testing.T) {
	onDevice(t)
	h, err := New(nil, 16)
	must(t, err)
	defer h.Close()
	at, err := cuda.MemAlloc(4096)
	must(t, err)
	defer at.Free()
	for name, row := range map[string]struct {
		low, high uint32
		largest   uint64 // finite, at 8 * 70
		first     []byte // NaN or infinite
		at        int
	}{
		"f32":  {0x7f800000, 0x7f800000, 0x7f7fffff_ff7fffff, []byte{0, 0, 0x80, 0xff}, 8 * 130},
		"f16":  {0x7c00, 0x7c000000, 0x7bff_fbff_7bff_fbff, []byte{1, 0x7c}, 8*130 + 6},
		"bf16": {0x7f80, 0x7f800000, 0x7f7f_ff7f_7f7f_ff7f, []byte{0xc0, 0x7f}, 8*130 + 4},
	} {
		data := make([]byte, 8*192-2)
		binary.LittleEndian.PutUint64(data[8*70:], row.largest)
		copy(data[row.at:], row.first)
		must(t, cuda.CopyToDevice(at, data))
		got, err := h.NotFinite(Range{Addr: uint64(at), Size: uint64(len(data)), Stride: 1, Chunk: 512}, row.low, row.high)
		must(t, err)
		for i := range 3 {
			if got.Has(i) != (i == 2) {
				t.Errorf("%s: chunk %d: %v", name, i, got.Has(i))
			}
		}
	}
}

// A kernel that computes something else, or none, is refused, and leaves no memory behind.
func TestNewProvesTheKernel(t *testing.T) {
	onDevice(t)
	good := ptx
	defer func() { ptx = good }()
	h, err := New(nil, 1) // the context keeps the memory of its first launch
	must(t, err)
	must(t, h.Close())
	free, _, err := cuda.MemInfo()
	must(t, err)
	for name, change := range map[string][2]string{
		"other constant": {"-4658895280553007687", "-4658895280553007685"},
		"other name":     {kernelName, "medusa_hush"},
		"no PTX":         {".version", ".vision"},
	} {
		ptx = bytes.ReplaceAll(good, []byte(change[0]), []byte(change[1]))
		if _, err := New(nil, 1); err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "other constant" && (!strings.Contains(err.Error(), "the device gives") || errors.As(err, new(cuda.Result))) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, _, err := cuda.MemInfo(); err != nil || now != free {
		t.Errorf("%d bytes of device memory are free, %d were (%v)", now, free, err)
	}
}

// The committed PTX equals the compiled source, if the compiler is at hand.
func TestPTXIsCurrent(t *testing.T) {
	clang, err := exec.LookPath("clang++-19")
	if err != nil {
		testenv.Skip(t, testenv.Clang)
	}
	rules, err := os.ReadFile("../../runners/reference/rules.mk")
	must(t, err)
	flags := regexp.MustCompile(`(?m)^PTX_FLAGS = (.*)$`).FindSubmatch(rules)
	if flags == nil {
		t.Fatal("rules.mk has no PTX_FLAGS")
	}
	args := strings.Fields(strings.ReplaceAll(string(flags[1]), "-Irunners", "-I../../runners"))
	got, err := exec.Command(clang, append(args, "-o", "-", "hash.cu")...).Output()
	must(t, err)
	if !bytes.Equal(got, ptx) {
		t.Error("the committed PTX is not what hash.cu compiles to (run make hash-ptx)")
	}
}

// The cost of hashing, against copying to the host and hashing there.
func BenchmarkHash(b *testing.B) {
	const size = 16 << 20
	b.Run("device", func(b *testing.B) {
		onDevice(b)
		at, err := cuda.MemAlloc(size)
		must(b, err)
		defer at.Free()
		h, err := New(nil, size/digest.ChunkBytes)
		must(b, err)
		defer h.Close()
		b.SetBytes(size)
		for b.Loop() {
			_, err := h.Hash([]Range{{uint64(at), size, 1, digest.ChunkBytes, true}})
			must(b, err)
		}
	})
	b.Run("host", func(b *testing.B) {
		onDevice(b)
		at, err := cuda.MemAlloc(size)
		must(b, err)
		defer at.Free()
		buf := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			must(b, cuda.CopyToHost(buf, at))
			for at := 0; at < size; at += digest.ChunkBytes {
				digest.Sum(buf[at : at+digest.ChunkBytes])
			}
		}
	})
}
