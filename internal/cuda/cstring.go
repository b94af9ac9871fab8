package cuda

import (
	"bytes"
	"unsafe"
)

// cString returns s with a final NUL, as C strings have.
func cString(s string) []byte { return append([]byte(s), 0) }

// goString returns the text before the first NUL.
func goString(buf []byte) string {
	text, _, _ := bytes.Cut(buf, []byte{0})
	return string(text)
}

// StringAt copies the C string at an address that C code returned. Address 0 gives the empty string.
func StringAt(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	// The address points to C memory, which the garbage collector does not move. go vet cannot know that, hence the detour.
	p := *(**byte)(unsafe.Pointer(&addr))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
