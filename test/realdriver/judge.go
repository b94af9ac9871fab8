package main

import (
	"fmt"
	"strings"
)

// answer is one line of the program `query`.
type answer struct {
	question     string // entry point, name, version, flags
	result       string // result and status
	file, offset string
}

func parseAnswers(text string) ([]answer, error) {
	var out []answer
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 8 {
			return nil, fmt.Errorf("line %d: want 8 words: %q", len(out)+1, line)
		}
		out = append(out, answer{strings.Join(f[:4], " "), f[4] + " " + f[5], f[6], f[7]})
	}
	return out, nil
}

// places has the address of each export of the driver, and of each of the interposer.
type places struct {
	driver     map[string]string // name by offset
	interposer map[string]uint64 // offset by name
	spec       map[string]known
}

// newPlaces fails if two names share an address: a hook by address could then stand for the wrong one.
func newPlaces(driver, interposer map[string]uint64, spec map[string]known) (*places, error) {
	p := &places{map[string]string{}, interposer, spec}
	for name, at := range driver {
		key := fmt.Sprint(at)
		if other, taken := p.driver[key]; taken && spec[name].Hook != spec[other].Hook {
			return nil, fmt.Errorf("%s and %s have one address, and only one of them has a hook", name, other)
		}
		p.driver[key] = name
	}
	return p, nil
}

// judgeNative finds the mistake in an answer that no interposer changed: each is an exported function.
func (p *places) judgeNative(a answer) string {
	if a.file == "-" || strings.HasPrefix(a.file, "libcuda.so") && p.driver[a.offset] != "" {
		return ""
	}
	return fmt.Sprintf("%s: the driver answers %s+%s, which is none of its exports", a.question, a.file, a.offset)
}

// judge finds the mistake in an answer under the interposer, beside the driver's own: results and status are the same; an
// export that driver.spec marks becomes the hook of that very name, any other one stays as it is.
func (p *places) judge(native, got answer, active bool) string {
	if got.question != native.question {
		return fmt.Sprintf("%s: asked in place of %s", got.question, native.question)
	}
	if got.result != native.result {
		return fmt.Sprintf("%s: result and status %s, without the interposer %s", got.question, got.result, native.result)
	}
	name := p.driver[native.offset]
	if native.file == "-" || !active || !p.spec[name].Hook {
		if got.file != native.file || got.offset != native.offset {
			return fmt.Sprintf("%s: answered by %s+%s, want %s+%s", got.question, got.file, got.offset, native.file, native.offset)
		}
		return ""
	}
	want, ok := p.interposer[name]
	if !ok {
		return fmt.Sprintf("%s: %s is to be hooked, and the interposer has no such function", got.question, name)
	}
	if got.file != interposerName || got.offset != fmt.Sprint(want) {
		return fmt.Sprintf("%s: answered by %s+%s, want the hook of %s at %s+%d", got.question, got.file, got.offset, name, interposerName, want)
	}
	return ""
}
