package main

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"

	"medusa/internal/cuda"
)

//go:embed late.ptx
var latePTX string

// lateImage is a module image in a shared object that the process may have preloaded, for the same module in a file.
var lateImage = cuda.Process("zoo_late_image")

// loadLate loads the module of the kernel scale when it is first needed. ZOO_LATE chooses its state:
//
//	unset    none
//	written  a variable that the kernel multiplies by, and that the host sets
//	warmed   the same, which warm-up multiplies by 1.5 once more each time that it runs
//	unknown  the same, which only kernels touch
//	options  none, but an option of the load that changes code
func (z *zoo) loadLate() error {
	if z.late != 0 {
		return nil
	}
	kind := os.Getenv("ZOO_LATE")
	m, err := z.loadLateImage(kind)
	if err != nil {
		return err
	}
	if kind == "written" {
		if err := setFactor(m, 1.5); err != nil {
			return errors.Join(err, m.Unload())
		}
	}
	if z.late, err = m.Function("scale"); err != nil {
		return errors.Join(err, m.Unload())
	}
	z.lateModule = m
	return nil
}

func (z *zoo) loadLateImage(kind string) (cuda.Module, error) {
	text := latePTX
	switch kind {
	case "options":
		return cuda.ModuleLoadDataEx([]byte(text+"\x00"), cuda.JITMaxRegisters, 64)
	case "":
		if at, err := lateImage.Addr(); err == nil {
			return cuda.ModuleLoadData(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), len(latePTX)+1)) // the shared object has it here
		}
	case "written", "warmed", "unknown":
		text = strings.Replace(text, ".visible .entry", ".visible .global .align 4 .f32 factor = 0f3F800000;\n.visible .entry", 1)
		text = strings.Replace(text, "mul.f32 \t%f3, %f2, %f1;", "mul.f32 \t%f3, %f2, %f1;\n\tld.global.f32 \t%f1, [factor];\n\tmul.f32 \t%f3, %f3, %f1;", 1)
	default:
		return 0, fmt.Errorf("ZOO_LATE=%s: want written, warmed, unknown or options", kind)
	}
	return cuda.ModuleLoadData(append([]byte(text), 0))
}

func factorOf(m cuda.Module) (cuda.DevicePtr, error) {
	at, _, err := m.Global("factor")
	return at, err
}

func setFactor(m cuda.Module, factor float32) error {
	at, err := factorOf(m)
	if err != nil {
		return err
	}
	return cuda.CopyToDevice(at, binary.LittleEndian.AppendUint32(nil, math.Float32bits(factor)))
}

// warm is the warm-up's work on the late module's variable. The new contents depend on the old ones, so a native start notices any
// other write to it.
func (z *zoo) warm() error {
	if os.Getenv("ZOO_LATE") != "warmed" {
		return nil
	}
	at, err := factorOf(z.lateModule)
	if err != nil {
		return err
	}
	held := make([]byte, 4)
	if err := cuda.CopyToHost(held, at); err != nil {
		return err
	}
	return setFactor(z.lateModule, 1.5*math.Float32frombits(binary.LittleEndian.Uint32(held)))
}
