package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Range is a range of device addresses.
type Range struct{ Base, Size uint64 }

// environ collects variables. Each method leaves out a variable that is not set.
type environ []string

func (e *environ) text(name, value string) {
	if value != "" {
		*e = append(*e, name+"="+value)
	}
}

func (e *environ) flag(name string, set bool) {
	if set {
		e.text(name, "1")
	}
}

func (e *environ) exit(name string, set bool) {
	if set {
		e.text(name, "exit")
	}
}

func (e *environ) number(name string, n uint64) {
	if n != 0 {
		e.text(name, strconv.FormatUint(n, 10))
	}
}

func (e *environ) sizes(name string, sizes []uint64) {
	var list []string
	for _, n := range sizes {
		list = append(list, strconv.FormatUint(n, 10))
	}
	e.text(name, strings.Join(list, ","))
}

func (e *environ) time(name string, t time.Time) {
	if !t.IsZero() {
		e.text(name, strconv.FormatInt(t.UnixNano(), 10))
	}
}

func (e *environ) addresses(name string, r Range) {
	if r != (Range{}) {
		e.text(name, fmt.Sprintf("%#x:%#x", r.Base, r.Size))
	}
}

// reader reads variables and keeps the first error.
type reader struct {
	getenv func(string) string
	err    error
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("read %s: %w", name, err)
	}
}

func (r *reader) text(name string) string { return r.getenv(name) }

func (r *reader) flag(name string) bool { return r.getenv(name) == "1" }

func (r *reader) number(name string) uint64 {
	text := r.getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		r.fail(name, err)
	}
	return n
}

func (r *reader) sizes(name string) []uint64 {
	list := r.getenv(name)
	if list == "" {
		return nil
	}
	var sizes []uint64
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			r.fail(name, err)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

func (r *reader) time(name string) time.Time {
	text := r.getenv(name)
	if text == "" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail(name, err)
	}
	return time.Unix(0, n)
}

// word reads a variable that has one of a set of words.
func word[W ~string](r *reader, name string, all []W) W {
	w := W(r.getenv(name))
	if w != "" && !slices.Contains(all, w) {
		r.fail(name, fmt.Errorf("%q is none of %s", w, join(all)))
	}
	return w
}

func join[W ~string](words []W) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}
