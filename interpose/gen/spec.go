package main

import (
	"fmt"
	"strconv"
	"strings"

	"medusa/internal/specfile"
)

// spec is the parsed trace.spec.
type spec struct {
	enums   []enum
	records []record
}

type enum struct {
	name   string
	values []enumValue
}

type enumValue struct {
	name string
	n    uint64
}

type record struct {
	name   string
	number uint64
	doc    []string
	fields []field
}

type field struct {
	name string
	typ  fieldType
}

// fieldType is a scalar, an enum or a nested tuple, or a list of one of them.
type fieldType struct {
	list  bool
	base  string // u8 ... bytes, the name of an enum, or empty for a tuple
	tuple []field
}

var scalars = map[string]bool{"u8": true, "u32": true, "u64": true, "i64": true, "f64": true, "str": true, "bytes": true}

func parseSpec(text string) (*spec, error) {
	rows, err := specfile.Parse(text)
	if err != nil {
		return nil, err
	}
	s := &spec{}
	for _, row := range rows {
		words := row.Words
		switch {
		case words[0] == "enum" && len(words) >= 3:
			err = s.parseEnum(words[1:])
		case words[0] == "record" && len(words) >= 4:
			err = s.parseRecord(words[1], words[2], strings.Join(words[3:], " "), row.Doc)
		default:
			err = fmt.Errorf("want enum or record with at least one member, found %q", strings.Join(words, " "))
		}
		if err == nil && len(row.Members) > 0 {
			err = fmt.Errorf("%s %s: its members belong on its line", words[0], words[1])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", row.Line, err)
		}
	}
	return s, s.check()
}

func (s *spec) parseEnum(words []string) error {
	e := enum{name: words[0]}
	for _, w := range words[1:] {
		name, number, ok := strings.Cut(w, "=")
		n, err := strconv.ParseUint(number, 10, 8)
		if !ok || err != nil {
			return fmt.Errorf("want name=number, found %q", w)
		}
		e.values = append(e.values, enumValue{name, n})
	}
	s.enums = append(s.enums, e)
	return nil
}

func (s *spec) parseRecord(name, number, text string, doc []string) error {
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return fmt.Errorf("record %s: bad number %q", name, number)
	}
	fields, rest, err := s.parseFields(text)
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	if rest != "" {
		return fmt.Errorf("record %s: trailing %q", name, rest)
	}
	s.records = append(s.records, record{name, n, doc, fields})
	return nil
}

// parseFields reads `name:type name:type ...` up to the end or a closing brace.
func (s *spec) parseFields(text string) ([]field, string, error) {
	var fields []field
	for text != "" && text[0] != '}' {
		name, rest, ok := strings.Cut(text, ":")
		if !ok {
			return nil, "", fmt.Errorf("want name:type, found %q", text)
		}
		var t fieldType
		rest, t.list = strings.CutPrefix(rest, "[]")
		if inner, tuple := strings.CutPrefix(rest, "{"); tuple {
			fs, after, err := s.parseFields(inner)
			if err != nil {
				return nil, "", err
			}
			if after == "" {
				return nil, "", fmt.Errorf("field %s: unclosed tuple", name)
			}
			t.tuple, rest = fs, after[1:]
		} else {
			end := strings.IndexAny(rest, " }")
			if end < 0 {
				end = len(rest)
			}
			t.base, rest = rest[:end], rest[end:]
			if !scalars[t.base] && !s.isEnum(t.base) {
				return nil, "", fmt.Errorf("field %s: unknown type %q", name, t.base)
			}
		}
		fields = append(fields, field{name, t})
		text = strings.TrimLeft(rest, " ")
	}
	return fields, text, nil
}

func (s *spec) isEnum(name string) bool {
	for _, e := range s.enums {
		if e.name == name {
			return true
		}
	}
	return false
}

// check refuses specs that the emitters cannot handle or that would break old traces.
func (s *spec) check() error {
	names, numbers := map[string]bool{}, map[uint64]bool{}
	for _, r := range s.records {
		if names[r.name] || numbers[r.number] {
			return fmt.Errorf("record %s %d: name or number used twice", r.name, r.number)
		}
		names[r.name], numbers[r.number] = true, true
		if len(r.doc) == 0 {
			return fmt.Errorf("record %s: undocumented", r.name)
		}
		for _, f := range r.fields {
			if f.typ.tuple != nil && !f.typ.list {
				return fmt.Errorf("record %s: field %s: a tuple must be a list", r.name, f.name)
			}
		}
	}
	if !names["process"] || !names["end"] {
		return fmt.Errorf("records process and end are required")
	}
	return nil
}
