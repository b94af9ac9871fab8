package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// proc is one `proc` row of driver.spec.
type proc struct {
	base, symbol string
	version      int
	suffix       string // "", "ptsz" or "ptds"
	hook         bool
	params       []param
}

type param struct{ decl, name string }

// result is one `result` row.
type result struct {
	number     int
	name, text string
}

// binding is one `bind` row. goName is empty if the binding is written by hand.
type binding struct {
	symbol       string
	goName, text string
}

type spec struct {
	procs    []proc
	results  []result
	bindings []binding
	entries  []string // symbols
}

// proc finds a row by its symbol.
func (s *spec) proc(symbol string) (proc, error) {
	for _, p := range s.procs {
		if p.symbol == symbol {
			return p, nil
		}
	}
	return proc{}, fmt.Errorf("no proc row of symbol %s above", symbol)
}

func parse(text string) (*spec, error) {
	s := &spec{}
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		switch {
		case strings.HasPrefix(line, "proc "):
			err = s.addProc(line, seen)
		case strings.HasPrefix(line, "result "):
			err = s.addResult(line)
		case strings.HasPrefix(line, "bind "):
			err = s.addBinding(line)
		case strings.HasPrefix(line, "entry "):
			err = s.addEntry(line)
		default:
			err = fmt.Errorf("unknown row %q", strings.Fields(line)[0])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *spec) addProc(line string, seen map[string]bool) error {
	head, args, ok := strings.Cut(line, " (")
	f := strings.Fields(head)
	if !ok || len(f) != 5 || !strings.HasSuffix(args, ")") {
		return fmt.Errorf("want `proc base symbol version flags (parameters)`")
	}
	p := proc{base: f[1], symbol: f[2]}
	var err error
	if p.version, err = strconv.Atoi(f[3]); err != nil {
		return fmt.Errorf("version of %s: %w", p.symbol, err)
	}
	if seen[p.symbol] {
		return fmt.Errorf("symbol %s twice", p.symbol)
	}
	seen[p.symbol] = true
	if n := len(s.procs); n > 0 && s.procs[n-1].base == p.base && s.procs[n-1].version >= p.version {
		return fmt.Errorf("rows of %s are not ordered by version", p.base)
	}
	for _, flag := range strings.Split(f[4], ",") {
		switch flag {
		case "-", "use", "edit", "alter": // the interposer's
		case "hook":
			p.hook = true
		case "ptsz", "ptds":
			p.suffix = flag
		default:
			return fmt.Errorf("unknown flag %q", flag)
		}
	}
	if args = strings.TrimSuffix(args, ")"); args != "void" {
		for _, a := range strings.Split(args, ", ") {
			a = strings.TrimSpace(a)
			name := a[strings.LastIndexAny(a, " *")+1:]
			if name == "" || name == a {
				return fmt.Errorf("parameter %q of %s has no name", a, p.symbol)
			}
			p.params = append(p.params, param{a, name})
		}
	}
	s.procs = append(s.procs, p)
	return nil
}

func (s *spec) addResult(line string) error {
	f := strings.SplitN(line, " ", 4)
	if len(f) != 4 {
		return fmt.Errorf("want `result number name text`")
	}
	n, err := strconv.Atoi(f[1])
	if err != nil {
		return fmt.Errorf("number of %s: %w", f[2], err)
	}
	s.results = append(s.results, result{n, f[2], f[3]})
	return nil
}

func (s *spec) addBinding(line string) error {
	f := strings.SplitN(line, " ", 4)
	if len(f) == 3 {
		return fmt.Errorf("want `bind symbol` or `bind symbol name text`")
	}
	b := binding{symbol: f[1]}
	if len(f) == 4 {
		b.goName, b.text = f[2], f[3]
	}
	for _, other := range s.bindings {
		if other.symbol == b.symbol {
			return fmt.Errorf("symbol %s bound twice", b.symbol)
		}
	}
	s.bindings = append(s.bindings, b)
	_, err := s.proc(b.symbol)
	return err
}

func (s *spec) addEntry(line string) error {
	symbol := strings.TrimPrefix(line, "entry ")
	if slices.Contains(s.entries, symbol) {
		return fmt.Errorf("entry %s twice", symbol)
	}
	s.entries = append(s.entries, symbol)
	_, err := s.proc(symbol)
	return err
}

// decls returns the parameter list of a C prototype.
func (p proc) decls() string {
	if len(p.params) == 0 {
		return "void"
	}
	d := make([]string, len(p.params))
	for i, a := range p.params {
		d[i] = a.decl
	}
	return strings.Join(d, ", ")
}

// variants lists the suffixes under which the symbol is exported.
func (p proc) variants() []string {
	if p.suffix == "" {
		return []string{""}
	}
	return []string{"", "_" + p.suffix}
}
