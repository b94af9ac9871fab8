package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"medusa/internal/specfile"
)

// spec is the parsed contract.spec.
type spec struct {
	protocol int
	headers  []string
	enums    []enum
	structs  []layout
	words    []words
	tables   []table
}

type enum struct {
	header, name, prefix string
	doc                  []string
	members              []value
}

type value struct {
	name   string
	number int
	doc    string
}

// layout is a struct that several languages share byte by byte.
type layout struct {
	header, name string
	doc          []string
	python       bool
	fields       []field
	size         int
}

type field struct {
	name   string
	typ    string // u8 ... char, text
	count  int    // of an array; 0: none
	offset int
	doc    string
}

// words are the values of a variable.
type words struct {
	name   string
	doc    []string
	values []string
}

// table is a group of variables.
type table struct {
	name   string
	form   string // the Go struct; empty: none
	read   bool   // by Go, too
	fields []variable
}

type variable struct {
	name, doc, field, typ          string
	c, inherited, untouched, again bool
}

var sizes = map[string]int{"u8": 1, "char": 1, "u32": 4, "u64": 8, "i64": 8, "f64": 8, "text": 8}

var fieldTypes = []string{"text", "flag", "exit", "number", "sizes", "time", "addresses"}

func parse(text string) (*spec, error) {
	rows, err := specfile.Parse(text)
	if err != nil {
		return nil, err
	}
	s := &spec{}
	for _, row := range rows {
		if err := s.add(row); err != nil {
			return nil, fmt.Errorf("line %d: %w", row.Line, err)
		}
	}
	return s, s.check()
}

func (s *spec) add(row specfile.Row) (err error) {
	if len(row.Words) < 2 {
		return fmt.Errorf("want a row with a name, found %q", row.Words[0])
	}
	name, more := row.Words[1], row.Words[2:]
	switch row.Words[0] {
	case "protocol":
		s.protocol, err = strconv.Atoi(name)
	case "header":
		s.headers = append(s.headers, name)
	case "enum":
		e := enum{header: s.header(), name: name, prefix: strings.Join(more, ""), doc: row.Doc}
		for _, m := range row.Members {
			n, err := strconv.Atoi(m.Words[len(m.Words)-1])
			if err != nil || len(m.Words) != 2 {
				return fmt.Errorf("enum %s: want a name and a number, found %q", name, strings.Join(m.Words, " "))
			}
			e.members = append(e.members, value{m.Words[0], n, m.Doc})
		}
		s.enums = append(s.enums, e)
	case "struct":
		return s.addStruct(name, row, slices.Contains(more, "python"))
	case "words":
		w := words{name: name, doc: row.Doc}
		for _, m := range row.Members {
			w.values = append(w.values, m.Words[0])
		}
		s.words = append(s.words, w)
	case "variables":
		form, write, _ := strings.Cut(strings.Join(more, ""), ":")
		s.tables = append(s.tables, table{name: name, form: form, read: form != "" && write == ""})
	case "var":
		return s.addVariable(name, more, row.Doc)
	default:
		err = fmt.Errorf("unknown row %q", row.Words[0])
	}
	return err
}

func (s *spec) header() string {
	if len(s.headers) == 0 {
		return ""
	}
	return s.headers[len(s.headers)-1]
}

var array = regexp.MustCompile(`^([a-z0-9]+)(?:\[([0-9]+)\])?$`)

func (s *spec) addStruct(name string, row specfile.Row, python bool) error {
	l := layout{header: s.header(), name: name, doc: row.Doc, python: python}
	widest := 1
	for _, m := range row.Members {
		if len(m.Words) != 2 {
			return fmt.Errorf("struct %s: want a name and a type, found %q", name, strings.Join(m.Words, " "))
		}
		parts := array.FindStringSubmatch(m.Words[1])
		if parts == nil || sizes[parts[1]] == 0 {
			return fmt.Errorf("struct %s: unknown type %q", name, m.Words[1])
		}
		f := field{name: m.Words[0], typ: parts[1], offset: l.size, doc: m.Doc}
		if parts[2] != "" {
			f.count, _ = strconv.Atoi(parts[2])
		}
		width := sizes[f.typ]
		if l.size%width != 0 {
			return fmt.Errorf("struct %s: %s is at byte %d, which does not suit its type (write the padding out)", name, f.name, l.size)
		}
		l.size += width * max(1, f.count)
		widest = max(widest, width)
		l.fields = append(l.fields, f)
	}
	if l.size == 0 || l.size%widest != 0 {
		return fmt.Errorf("struct %s: its size of %d bytes is not a multiple of %d (write the padding out)", name, l.size, widest)
	}
	s.structs = append(s.structs, l)
	return nil
}

func (s *spec) addVariable(name string, more, doc []string) error {
	if len(s.tables) == 0 || len(doc) == 0 {
		return fmt.Errorf("var %s: no table above it, or no comment that documents it", name)
	}
	t := &s.tables[len(s.tables)-1]
	v := variable{name: name, doc: strings.Join(doc, " ")}
	if t.form != "" {
		if len(more) < 2 {
			return fmt.Errorf("var %s: want the field of %s and its type", name, t.form)
		}
		v.field, v.typ, more = more[0], more[1], more[2:]
		if !slices.Contains(fieldTypes, v.typ) && !slices.ContainsFunc(s.words, func(w words) bool { return w.name == v.typ }) {
			return fmt.Errorf("var %s: unknown type %q", name, v.typ)
		}
	}
	for _, flag := range more {
		switch flag {
		case "c":
			v.c = true
		case "inherited":
			v.inherited = true
		case "untouched":
			v.untouched = true
		case "again":
			v.again = true
		default:
			return fmt.Errorf("var %s: unknown flag %q", name, flag)
		}
	}
	t.fields = append(t.fields, v)
	return nil
}

// check refuses a spec from which some side could not be generated.
func (s *spec) check() error {
	if s.protocol == 0 || len(s.headers) == 0 {
		return fmt.Errorf("protocol and header are required")
	}
	seen := map[string]bool{}
	for _, t := range s.tables {
		for _, v := range t.fields {
			if !strings.HasPrefix(v.name, prefix) || seen[v.name] != v.again {
				return fmt.Errorf("var %s: defined twice, used again without a definition, or not %s*", v.name, prefix)
			}
			seen[v.name] = true
		}
	}
	return nil
}

// prefix begins the names of all variables.
const prefix = "MEDUSA_"

// variables lists every variable once.
func (s *spec) variables() []variable {
	var all []variable
	for _, t := range s.tables {
		for _, v := range t.fields {
			if !v.again {
				all = append(all, v)
			}
		}
	}
	return all
}

// constant returns the Go constant for a variable's name.
func (v variable) constant() string {
	return "Env" + specfile.GoName(strings.ToLower(strings.TrimPrefix(v.name, prefix)))
}
