package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The findings that the last line counts, and those that have a line of their own. None may occur.
const (
	panics   = "panic"
	outside  = "file outside"
	accepted = "accepted under a policy"
	wrong    = "wrong after fallback"
	left     = "left behind"

	hang     = "hang"
	memory   = "memory"
	escape   = "terminal escape"
	extents  = "extent accepted"
	halfMade = "half-made file"
	unserved = "not served"
	lying    = "status that lies"
	pointer  = "wrong pointer accepted"
	too      = "too few reached rebuild"
)

// tally counts. Its methods may be called concurrently.
type tally struct {
	mu       sync.Mutex
	out      io.Writer
	tried    int
	findings map[string]int
	shown    map[string]bool
}

// perKind bounds how many findings of a kind are printed if they only differ in their mutant.
const perKind = 400

// found notes a finding. Where names the attack and its change.
func (t *tally) found(kind, where, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.findings == nil {
		t.findings, t.shown = map[string]int{}, map[string]bool{}
	}
	t.findings[kind]++
	text := fmt.Sprintf(format, args...)
	attack, _, _ := strings.Cut(where, " (")
	if key := kind + digits.ReplaceAllString(attack+text, "0"); !t.shown[key] && t.findings[kind] <= perKind {
		t.shown[key] = true
		fmt.Fprintf(t.out, "FOUND %s: %s: %s\n", kind, where, text)
	}
}

var digits = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// randomPart is the part of a name that os.MkdirTemp adds.
var randomPart = regexp.MustCompile(`[0-9]{6,}`)

func (t *tally) try(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried += n
}

// line prints counts.
func (t *tally) line(name string, counts map[string]int) {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[key], key))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%s: %s\n", name, strings.Join(parts, ", "))
}

func (t *tally) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.findings) > 0
}

// last returns the line that a run ends with; findings without a number in it come before, one a line.
func (t *tally) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(t.findings)) {
		switch kind {
		case panics, outside, accepted, wrong, left:
		default:
			fmt.Fprintf(&text, "also found: %d of %q\n", t.findings[kind], kind)
		}
	}
	fmt.Fprintf(&text, "attack: %d tried, %d panics, %d files outside, %d accepted under a policy, %d wrong after fallback, %d left behind",
		t.tried, t.findings[panics], t.findings[outside], t.findings[accepted], t.findings[wrong], t.findings[left])
	return text.String()
}

// panicText is in the output of a Go program or a C library that panics.
var panicText = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|runtime: .*out of memory.*|.*runtime error: .*|\[signal SIG.*|.*AddressSanitizer.*)$`)

// panicked returns the line of a program's output that shows a panic, or "".
func panicked(text string) string { return panicText.FindString(text) }
