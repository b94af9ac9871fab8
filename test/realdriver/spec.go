package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// known is driver.spec's row of an exported name.
type known struct{ Hook bool }

// readSpec returns the exported names of driver.spec.
func readSpec(path string) (map[string]known, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	names := map[string]known{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] != "proc" {
			continue
		}
		flags := strings.Split(f[4], ",")
		k := known{slices.Contains(flags, "hook")}
		names[f[2]] = k
		for _, suffix := range []string{"ptsz", "ptds"} {
			if slices.Contains(flags, suffix) {
				names[f[2]+"_"+suffix] = k
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no entry point", path)
	}
	return names, nil
}

// exports returns the addresses of the functions named cu* in a library, by name.
func exports(path string) (map[string]uint64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]uint64{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && driverName.MatchString(s.Name) {
			out[s.Name] = s.Value
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s exports no function of the driver", path)
	}
	return out, nil
}

var (
	driverName = regexp.MustCompile(`^cu[A-Z]`)
	flavour    = regexp.MustCompile(`(_v\d+)?(_ptsz|_ptds)?$`)
	stream     = regexp.MustCompile(`(_ptsz|_ptds)$`)
	// A name must contain one of these if the function may allocate, launch, capture, change a graph, or load code.
	telling = regexp.MustCompile(`Alloc|Launch|Capture|Graph\w*Add|Graph\w*Instantiate|(Module|Library|Func|Link)\w*(Load|Add)|` +
		`MemCreate|MemMap|MemAddressReserve|MemHostRegister|Import|IpcOpen|GraphicsMap|GetMapped`)
)

// expectation is one line of unhooked.txt: a name without a hook, and why it needs none.
type expectation struct{ name, reason string }

func parseExpected(text []byte) ([]expectation, error) {
	var out []expectation
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, reason, ok := strings.Cut(string(line), " ")
		if reason = strings.TrimSpace(reason); !ok || reason == "" || !driverName.MatchString(name) {
			return nil, fmt.Errorf("unhooked.txt:%d: want a name and a reason", i+1)
		}
		if slices.ContainsFunc(out, func(e expectation) bool { return e.name == name }) {
			return nil, fmt.Errorf("unhooked.txt:%d: %s twice", i+1, name)
		}
		out = append(out, expectation{name, reason})
	}
	return out, nil
}

// unhooked returns the driver's names that tell of an allocation, a launch, a capture or code, and have no hook. A name stands for
// its stream flavours.
func unhooked(driver map[string]uint64, spec map[string]known) []string {
	var out []string
	for name := range driver {
		if telling.MatchString(name) && !spec[name].Hook {
			out = append(out, stream.ReplaceAllString(name, ""))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compareExpected returns a fault for each name that is missing in the list, and for each line that is no longer true.
func compareExpected(found []string, expected []expectation, spec map[string]known) []string {
	var faults []string
	for _, name := range found {
		if !slices.ContainsFunc(expected, func(e expectation) bool { return e.name == name }) {
			faults = append(faults, fmt.Sprintf("%s: no hook knows it, and unhooked.txt gives no reason why none is needed", name))
		}
	}
	for _, e := range expected {
		if spec[e.name].Hook {
			faults = append(faults, fmt.Sprintf("%s: unhooked.txt says that it has no hook, but it has one", e.name))
		}
	}
	return faults
}
