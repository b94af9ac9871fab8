package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"medusa/interpose"
	"medusa/interpose/trace"
)

func joined(errs []error) error {
	var text []string
	for _, err := range errs {
		text = append(text, err.Error())
	}
	if len(text) == 0 {
		return nil
	}
	return errors.New(strings.Join(text, "; "))
}

// filled judges the output of the test program `large`: its memory keeps its bytes, and lies in the region if there is one.
func filled(out string, region interpose.Region) error {
	got := named(out)
	if got["kept"] != "1" {
		return fmt.Errorf("memory at the ends of an allocation did not keep its bytes (kept %q)", got["kept"])
	}
	seen := 0
	for line := range strings.Lines(out) {
		text, ok := strings.CutPrefix(line, "at ")
		if !ok {
			continue
		}
		seen++
		at, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return err
		}
		if region.Size != 0 && at-region.Base >= region.Size {
			return fmt.Errorf("an allocation lies at %#x, outside of the region at %#x", at, region.Base)
		}
	}
	if seen == 0 {
		return errors.New("no allocation was made")
	}
	return nil
}

// readOwnMemory reads memory of this process as the recorder does, and by the file that could stand in.
func readOwnMemory(a *Attempt) error {
	value, copied := uint64(0x6d6564757361), make([]byte, 8)
	from := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&value)), Len: 8}}
	to := []unix.Iovec{{Base: &copied[0]}}
	to[0].SetLen(8)
	n, err := unix.ProcessVMReadv(os.Getpid(), to, from, 0)
	a.row("process_vm_readv", "%d bytes, error %v", n, err)
	f, openErr := os.Open("/proc/self/mem")
	if openErr != nil {
		a.row("/proc/self/mem", "%v", openErr)
		return err
	}
	defer f.Close()
	n, memErr := f.ReadAt(copied, int64(uintptr(unsafe.Pointer(&value))))
	a.row("/proc/self/mem", "%d bytes, error %v", n, memErr)
	if memErr == nil { // the recorder falls back to this
		return nil
	}
	return err
}

// answers makes rows of recorded.py's output, and expects that each kernel node names its kernel in one of its two members.
func answers(a *Attempt, out string) error {
	nodes, kinds, loads := 0, map[string]int{}, 0
	var nameless []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) == 4 && f[0] == "load":
			loads++
			a.row("modules loaded until "+f[1], "%s after %s s", f[3], f[2])
		case len(f) == 5 && f[0] == "node":
			nodes++
			kinds["func "+f[2]+", kern "+f[3]]++
			if f[4] == "-" {
				nameless = append(nameless, f[1])
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		a.row("kernel nodes with "+kind, "%d of %d", kinds[kind], nodes)
	}
	switch {
	case nodes == 0 || loads == 0:
		return errors.New("the captured graph's nodes, or the loads of modules, were not told")
	case len(nameless) > 0:
		return fmt.Errorf("the driver names no kernel for nodes %s", strings.Join(nameless, ", "))
	}
	return nil
}

// recorded counts the records of a trace that show whether the recorder understands a driver.
func recorded(a *Attempt, path string) error {
	recs, err := trace.ReadAll(path)
	if err != nil {
		return err
	}
	kernels, hidden, modules, maps, data, graphs := 0, 0, 0, 0, 0, 0
	hiddenModules, functions := map[uint32]bool{}, map[uint32]uint32{}
	var faults []error
	for _, r := range recs {
		switch r := r.(type) {
		case *trace.Graph:
			graphs++
		case *trace.Module:
			modules++
			hiddenModules[r.ID] = r.Kind == trace.ModuleHidden
		case *trace.Function:
			functions[r.ID] = r.Module
		case *trace.Kernel:
			kernels++
			if hiddenModules[functions[r.Function]] {
				hidden++
			}
		case *trace.TensorMap:
			maps++
		case *trace.Edge:
			if r.FromPort != 0 || r.ToPort != 0 || r.Type != 0 {
				data++
			}
		case *trace.Opaque:
			faults = append(faults, fmt.Errorf("a node of type %d is not described: %s", r.Type, r.Reason))
		case *trace.Fault:
			faults = append(faults, fmt.Errorf("%s: %s", r.Call, r.Reason))
		}
	}
	a.row("graphs", "%d", graphs)
	a.row("kernel nodes", "%d, of which %d of hidden modules", kernels, hidden)
	a.row("modules and libraries loaded", "%d", modules)
	a.row("tensor maps", "%d", maps)
	a.row("edges with data", "%d", data)
	if graphs == 0 || kernels == 0 {
		faults = append(faults, errors.New("no captured graph with a kernel was recorded"))
	}
	return joined(faults)
}

// start is the torch engine's output about one start.
type start struct {
	Start  string            `json:"start"`
	Graphs int               `json:"graphs"`
	Tokens map[string]any    `json:"tokens"`
	Logits map[string]string `json:"logits"`
}

func parseStart(out string) (s start, err error) {
	if err := json.Unmarshal([]byte(lastLine(out)), &s); err != nil {
		return s, fmt.Errorf("read the engine's report: %w", err)
	}
	return s, nil
}

// sameOutputs says whether two starts computed the same, bit for bit.
func sameOutputs(a, b start) error {
	if len(a.Logits) == 0 || len(a.Tokens) == 0 {
		return errors.New("the engine reports no logits or tokens")
	}
	if !reflect.DeepEqual(a.Logits, b.Logits) {
		return errors.New("logits differ")
	}
	if !reflect.DeepEqual(a.Tokens, b.Tokens) {
		return errors.New("tokens differ")
	}
	return nil
}
