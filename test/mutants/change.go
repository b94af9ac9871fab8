package main

import (
	"bytes"
	"fmt"
	"strings"
)

// change is a mutant's change of the statement behind its marker.
type change struct{ verb, old, new string }

// These need no text of the statement, so they survive every renaming. Both operands of a condition stay in the code:
// variables of it are still used.
var (
	skip   = change{verb: "skip"}   // the statement is not executed
	never  = change{verb: "never"}  // the condition of an if, while or case, or the result of a return, is false
	always = change{verb: "always"} // it is true
	negate = change{verb: "negate"} // it is the opposite
)

// becomes puts another statement in its place.
func becomes(statement string) change { return change{verb: "becomes", new: statement} }

// replace changes text that stands in the statement exactly once. Of a statement with a body it sees the head alone.
func replace(old, new string) change { return change{"replace", old, new} }

func (c change) String() string {
	switch c.verb {
	case "becomes":
		return fmt.Sprintf("becomes %q", c.new)
	case "replace":
		return fmt.Sprintf("replace %q by %q", c.old, c.new)
	}
	return c.verb
}

// span is a part of a file, in bytes.
type span struct{ from, to int }

// statement is the place of a change.
type statement struct {
	syntax
	whole     span
	head      span // without its body
	condition span // empty if it has none
}

// syntax holds the parts of a language that the changes need.
type syntax struct {
	never, always, negate string // around the condition: %s
	skip                  string // around the statement
}

// apply returns the file with the change made.
func (c change) apply(source []byte, s *statement) ([]byte, error) {
	part, form := s.condition, ""
	switch c.verb {
	case "skip":
		part, form = s.whole, s.skip
	case "never":
		form = s.never
	case "always":
		form = s.always
	case "negate":
		form = s.negate
	case "becomes":
		part, form = s.whole, "%.0s"+strings.ReplaceAll(c.new, "%", "%%")
	case "replace":
		head := source[s.head.from:s.head.to]
		if n := bytes.Count(head, []byte(c.old)); n != 1 {
			return nil, fmt.Errorf("%q stands %d times in %q, want once", c.old, n, head)
		}
		if c.old == c.new {
			return nil, fmt.Errorf("replace %q by itself", c.old)
		}
		return splice(source, s.head, string(bytes.Replace(head, []byte(c.old), []byte(c.new), 1))), nil
	}
	if part == (span{}) {
		return nil, fmt.Errorf("%s does not apply to %q", c.verb, source[s.head.from:s.head.to])
	}
	return splice(source, part, fmt.Sprintf(form, source[part.from:part.to])), nil
}

func splice(source []byte, s span, text string) []byte {
	return append(append(append([]byte(nil), source[:s.from]...), text...), source[s.to:]...)
}
