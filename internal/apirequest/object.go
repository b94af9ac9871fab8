package apirequest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The bounds of an object. Python's reader, which vLLM has, takes less than 1,000 levels.
const (
	maxDepth   = 900
	maxMembers = 1000
)

// readObject reads the members "model" and "stream" of an object. Names are compared exactly: encoding/json would take "MODEL" for "model". It takes
// what Python's json takes: NaN, infinities and a byte-order mark as well. Unlike Python it refuses members that are there twice, because engines
// differ in which of them they take.
func readObject(body []byte) (*Asked, error) {
	if !utf8.Valid(body) {
		return nil, refuse("", "the body is not UTF-8")
	}
	s := &scanner{data: body}
	s.at = len(body) - len(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	a := &Asked{place: Body}
	seen := map[string]bool{}
	s.space()
	if s.at == len(body) {
		return nil, refuse("", "the body is empty, a JSON object is expected")
	}
	if s.next() != '{' {
		if err := s.whole(); err != nil {
			return nil, err
		}
		return nil, refuse("", "the body is no JSON object")
	}
	err := s.members(1, func(name []byte, from, to int) error {
		key, err := text(name)
		if err != nil {
			return err
		}
		// mutant: members that are there twice
		if seen[key] {
			return twice(key)
		}
		if seen[key] = true; len(seen) > maxMembers {
			return refuse("", "the body has more than %d members", maxMembers)
		}
		value := body[from:to]
		switch key {
		case "model":
			a.at, a.end = from, to
			if string(value) == "null" {
				return nil
			}
			if value[0] != '"' {
				return wrongType(kindOf(value[0]))
			}
			a.Model, err = text(value)
		case "stream":
			a.Stream = string(value) == "true"
		}
		return err
	})
	if err == nil {
		err = s.over()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// text decodes a string that the scanner has checked.
func text(quoted []byte) (s string, err error) {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", refuse("", "read body: %v", err)
	}
	return s, nil
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a truth value"
	}
	return "a number"
}

// scanner checks the syntax of JSON.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) bad(what string) error {
	if s.at >= len(s.data) {
		return refuse("", "the body is no JSON: it ends too early")
	}
	return refuse("", "the body is no JSON: at byte %d %s", s.at, what)
}

// next is the byte at the scanner's place; 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// whole passes the only value of the body.
func (s *scanner) whole() error {
	if err := s.value(1); err != nil {
		return err
	}
	return s.over()
}

// over checks that nothing follows.
func (s *scanner) over() error {
	if s.space(); s.at < len(s.data) {
		return s.bad("something follows the value")
	}
	return nil
}

// value passes a value.
func (s *scanner) value(depth int) error {
	// mutant: depth of bodies
	if depth > maxDepth {
		return s.bad("values are nested too deeply")
	}
	switch s.next() {
	case '{':
		return s.members(depth, func([]byte, int, int) error { return nil })
	case '[':
		return s.list(depth)
	case '"':
		return s.string()
	}
	for _, word := range []string{"true", "false", "null", "NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(s.data[s.at:], []byte(word)) {
			s.at += len(word)
			return nil
		}
	}
	return s.number()
}

// members passes an object, and calls each for its members: the name as it is written, and the place of the value.
func (s *scanner) members(depth int, each func(name []byte, from, to int) error) error {
	return s.items('}', func() error {
		from := s.at
		if s.next() != '"' {
			return s.bad("the name of a member is expected")
		}
		if err := s.string(); err != nil {
			return err
		}
		name := s.data[from:s.at]
		if s.space(); s.next() != ':' {
			return s.bad("a colon is expected")
		}
		s.at++
		s.space()
		from = s.at
		if err := s.value(depth + 1); err != nil {
			return err
		}
		return each(name, from, s.at)
	})
}

func (s *scanner) list(depth int) error {
	return s.items(']', func() error { return s.value(depth + 1) })
}

// items passes an opening bracket, items with commas between them, and the closing bracket.
func (s *scanner) items(closing byte, item func() error) error {
	s.at++
	if s.space(); s.next() == closing {
		s.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		s.space()
		switch s.next() {
		case ',':
			s.at++
			s.space()
		case closing:
			s.at++
			return nil
		default:
			return s.bad("a comma or a closing bracket is expected")
		}
	}
}

func (s *scanner) string() error {
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c < ' ':
			return s.bad("a string has a control character")
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.bad("")
}

// escape passes a backslash and what it escapes, but for its last byte.
func (s *scanner) escape() error {
	s.at++
	switch s.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			s.at++
			if c := s.next() | 0x20; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') || s.next() < '0' {
				return s.bad("an escape needs four hexadecimal digits")
			}
		}
		return nil
	}
	return s.bad("an escape is unknown")
}

func (s *scanner) number() error {
	digits := func() bool {
		from := s.at
		for c := s.next(); c >= '0' && c <= '9'; c = s.next() {
			s.at++
		}
		return s.at > from
	}
	if s.next() == '-' {
		s.at++
	}
	if s.next() == '0' {
		s.at++
	} else if !digits() {
		return s.bad("a value is expected")
	}
	if s.next() == '.' {
		if s.at++; !digits() {
			return s.bad("a digit is expected")
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		if s.at++; s.next() == '+' || s.next() == '-' {
			s.at++
		}
		if !digits() {
			return s.bad("a digit is expected")
		}
	}
	return nil
}
