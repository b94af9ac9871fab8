// Package cubin reads device code without a device: fatbins, cubins and PTX.
//
// In: the bytes of a module's image, as a load call of the driver takes them: a fat binary without its 24-byte wrapper (which has
// a pointer that is valid in its process only), a cubin, or PTX. Out: the code objects inside, each with its kernels, their
// parameter layouts and its module variables. Fails: if the bytes are of another kind or damaged; the error is a *FormatError
// with the offset. Layouts: the CUDA binary utilities, as observed in their output.
//
// Every size is checked against the bytes that exist before anything is allocated for it.
package cubin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Kind is the form of a code object.
type Kind uint8

// The kinds, with the numbers used in fat binaries.
const (
	PTX   Kind = 1
	Cubin Kind = 2
)

func (k Kind) String() string {
	switch k {
	case PTX:
		return "ptx"
	case Cubin:
		return "cubin"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Object is one piece of device code.
type Object struct {
	Kind    Kind
	Arch    uint32 // compute capability as sm_<number>: 90
	Name    string // the name in its fat binary; mostly empty
	Kernels []Kernel
	Globals []Global
}

// Kernel is an entry point. Params are in order; all of them share one buffer.
type Kernel struct {
	Name   string // mangled
	Params []Param
}

// Param is the position of a parameter in its kernel's buffer, in bytes.
type Param struct{ Offset, Size uint32 }

// Global is a module variable.
type Global struct {
	Name     string
	Size     uint64 // bytes
	Constant bool   // __constant__: only the host can write it
}

// State returns the variables in which kernels of the object can leave data behind.
func (o *Object) State() []Global {
	var state []Global
	for _, g := range o.Globals {
		if !g.Constant && !g.empty() && !g.text() {
			state = append(state, g)
		}
	}
	return state
}

// empty recognizes the customization points and tags of the C++ standard library and of Thrust: constants of classes without
// members, which nearly every module has.
func (g *Global) empty() bool {
	return g.Size == 1 && strings.HasPrefix(g.Name, "_ZN") && (strings.Contains(g.Name, "4cuda3std") || strings.Contains(g.Name, "6thrust"))
}

// text recognizes string literals by the names that compilers give them: those of Triton's assertions, which kernels only pass to the driver,
// and LLVM's, which is _$_str or _$_str_$_1 in PTX (libdevice asks NVVMReflect about "__CUDA_FTZ", and the literal outlives the answer).
func (g *Global) text() bool {
	for _, before := range []string{"assertMessage_", "assertFile_", "assertFunc_", "_$_str_$_"} {
		number, found := strings.CutPrefix(g.Name, before)
		// mutant: texts of assertions
		if found && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	// mutant: string literals
	return g.Name == "_$_str"
}

// FormatError names the place at which an image cannot be read.
type FormatError struct {
	What   string // the part that was being read
	Offset uint64 // in the image; for compressed code, in the decompressed bytes
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: offset %d: %s", e.What, e.Offset, e.Reason)
}

func bad(what string, offset uint64, format string, args ...any) error {
	return &FormatError{what, offset, fmt.Sprintf(format, args...)}
}

// Parse reads an image. A fat binary may have several objects: one per architecture, and PTX for later ones.
func Parse(image []byte) ([]Object, error) {
	switch {
	case len(image) >= 4 && binary.LittleEndian.Uint32(image) == containerMagic:
		return parseFatbin(image)
	case bytes.HasPrefix(image, []byte(elfMagic)):
		o, err := parseCubin(image)
		if err != nil {
			return nil, err
		}
		return []Object{o}, nil
	case looksLikePTX(image):
		o, err := parsePTX(image)
		if err != nil {
			return nil, err
		}
		return []Object{o}, nil
	}
	return nil, bad("image", 0, "neither a fat binary, a cubin nor PTX")
}

// words reads little-endian numbers and checks their offsets.
type words struct {
	data []byte
	what string
}

func (w words) bytes(at, n uint64) ([]byte, error) {
	if at > uint64(len(w.data)) || n > uint64(len(w.data))-at {
		return nil, bad(w.what, at, "%d bytes, of which %d are there", n, uint64(len(w.data))-min(at, uint64(len(w.data))))
	}
	return w.data[at : at+n], nil
}

// text returns the NUL-terminated string at an offset.
func (w words) text(at uint64) (string, error) {
	if at >= uint64(len(w.data)) {
		return "", bad(w.what, at, "a name outside of %d bytes", len(w.data))
	}
	end := bytes.IndexByte(w.data[at:], 0)
	if end < 0 {
		return "", bad(w.what, at, "a name without an end")
	}
	return string(w.data[at : at+uint64(end)]), nil
}
