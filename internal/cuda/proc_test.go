package cuda

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

var libc = Library("libc.so.6")

func TestMissingLibraryIsReadable(t *testing.T) {
	err := Library("libdoesnotexist.so.9").Proc("anything").Call()
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Symbol != "" {
		t.Fatalf("got %v, want a *MissingError of the library", err)
	}
	if !strings.HasPrefix(err.Error(), "open libdoesnotexist.so.9: ") {
		t.Errorf("unreadable error %q", err)
	}
}

func TestMissingSymbolIsReadable(t *testing.T) {
	p := libc.Proc("cuDoesNotExist_v9")
	for range 2 { // the result of the lookup is kept
		err := p.Call(1, 2, 3)
		var missing *MissingError
		if !errors.As(err, &missing) || missing.Symbol != "cuDoesNotExist_v9" {
			t.Fatalf("got %v, want a *MissingError of the symbol", err)
		}
		if !strings.HasPrefix(err.Error(), "find cuDoesNotExist_v9 in libc.so.6: ") {
			t.Errorf("unreadable error %q", err)
		}
	}
	if addr, err := p.Addr(); addr != 0 || err == nil {
		t.Errorf("Addr() = %#x, %v; want 0 and an error", addr, err)
	}
}

func TestProcessSymbols(t *testing.T) {
	if Process("medusa_no_such_function").Present() {
		t.Error("a symbol that no library has is present")
	}
	strlen := Process("strlen")
	s := cString("capture")
	n, err := strlen.Invoke(uintptr(unsafe.Pointer(&s[0])))
	if err != nil || n != 7 {
		t.Errorf("strlen = %d, %v; want 7", n, err)
	}
}

// abs(x) returns x, so it is a C function whose result the test chooses.
func TestCallMapsResults(t *testing.T) {
	abs := libc.Proc("abs")
	if err := abs.Call(0); err != nil {
		t.Errorf("CUDA_SUCCESS became %v", err)
	}
	err := abs.Call(uintptr(IllegalAddress))
	var r Result
	if !errors.As(err, &r) || r != IllegalAddress || !Sticky(err) {
		t.Fatalf("got %v, want a sticky IllegalAddress", err)
	}
	if want := "abs: CUDA_ERROR_ILLEGAL_ADDRESS"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want it to start with %q", err, want)
	}
	if err := abs.Call(uintptr(OutOfMemory)); Sticky(err) {
		t.Errorf("%v is not sticky", err)
	}
	if got, want := Result(12345).Error(), "CUresult 12345"; got != want {
		t.Errorf("unknown result reads %q, want %q", got, want)
	}
}

// A call allocates only the slice of its arguments and values that escape through them, because decoding makes several calls per
// token.
func TestCallAllocations(t *testing.T) {
	abs := libc.Proc("abs")
	if n := testing.AllocsPerRun(100, func() { _ = abs.Call(0) }); n > 1 {
		t.Errorf("a call allocates %v times, want at most 1", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		var out uint64
		_ = abs.Call(0, uintptr(unsafe.Pointer(&out)))
	}); n > 2 {
		t.Errorf("a call with an out parameter allocates %v times, want at most 2", n)
	}
}
