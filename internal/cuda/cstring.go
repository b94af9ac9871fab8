package cuda

import (
	"bytes"
	"unsafe"
)

// cString is s with the NUL that C ends strings with.
func cString(s string) []byte { return append([]byte(s), 0) }

// goString is the text before the first NUL.
func goString(buf []byte) string {
	text, _, _ := bytes.Cut(buf, []byte{0})
	return string(text)
}

// StringAt copies the C string at an address that C code returned; address 0 is the empty string.
func StringAt(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	// The address is C's, so that the collector has no part in it; go vet cannot know.
	p := *(**byte)(unsafe.Pointer(&addr))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
