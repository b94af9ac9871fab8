package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"medusa/artifacts"
	"medusa/inspect"
	"medusa/internal/printable"
)

// width is that of the usual terminal. Only a word that is longer, such as a path, goes beyond it.
const width = 80

// narrow is how much of that the first cell of a row takes before it is broken.
const narrow = 32

// table is rows of three cells, which take several lines if they are long.
type table [][3]string

func (t *table) row(a, b, c string) { *t = append(*t, [3]string{a, b, c}) }

func (t table) write(w io.Writer) error {
	longest := func(lines []string) (n int) {
		for _, line := range lines {
			n = max(n, utf8.RuneCountInString(line))
		}
		return n
	}
	var first, second int
	for _, row := range t {
		if n := longest(wrap(row[0], narrow)); n <= narrow {
			first = max(first, n)
		}
		second = max(second, utf8.RuneCountInString(row[1]))
	}
	for _, row := range t {
		names, texts := wrap(row[0], narrow), wrap(row[2], width-first-second-4)
		if longest(names) > narrow { // a path has a line of its own
			if _, err := printable.Fprintf(w, "%s\n", row[0]); err != nil {
				return err
			}
			names = nil
		}
		for i := range max(len(names), len(texts)) {
			line := fmt.Sprintf("%-*s  %-*s  %s", first, cell(names, i), second, cell(row[1:2], i), cell(texts, i))
			if _, err := printable.Fprintf(w, "%s\n", strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
	}
	return nil
}

func cell(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// wrap breaks a text between words.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// WriteTable writes the report as tables.
func (r *Report) WriteTable(w io.Writer) error {
	for i, t := range []table{r.parts(), r.features(), r.privileges(), r.verdicts()} {
		if i > 0 && len(t) > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) parts() (t table) {
	t.row("PART", "STATE", "DETAIL")
	for _, p := range r.Parts {
		state := "ok"
		if !p.OK {
			state = "fails"
		}
		t.row(p.Name, state, strings.TrimSpace(p.Path+" "+p.Detail))
	}
	if r.GPU == nil {
		return t
	}
	for _, d := range r.GPU.Devices {
		detail := fmt.Sprintf("%s, compute capability %s, %d SMs, %s", d.Name, d.ComputeCapability, d.SMCount, inspect.Bytes(d.Memory))
		if d.Free > 0 {
			detail += fmt.Sprintf(", %s free", inspect.Bytes(d.Free))
		}
		t.row(fmt.Sprintf("device %d", d.Ordinal), "", detail)
	}
	return t
}

func (r *Report) features() (t table) {
	if r.GPU == nil || len(r.GPU.Features) == 0 {
		return nil
	}
	t.row("FEATURE", "STATE", "NEEDED BY, SINCE")
	for _, f := range r.GPU.Features {
		detail := fmt.Sprintf("%s, CUDA %s", f.Need, Version(f.Since))
		if f.Detail != "" {
			detail += ": " + f.Detail
		}
		t.row(f.Name, string(f.State), detail)
	}
	return t
}

func (r *Report) privileges() (t table) {
	if len(r.TooWide) == 0 {
		return nil
	}
	t.row("POD", "", "PRIVILEGE THAT NOTHING NEEDS (SETTING THAT TAKES IT)")
	for _, s := range r.TooWide {
		t.row("", "", s)
	}
	return t
}

func (r *Report) verdicts() (t table) {
	if len(r.Artifacts) == 0 {
		return nil
	}
	t.row("ARTIFACT", "RESTORES", "WHY")
	for _, v := range r.Artifacts {
		why := append([]string{}, v.Reasons...)
		for _, s := range v.Noted {
			why = append(why, "noted: "+s)
		}
		if len(v.Unchecked) > 0 && v.Restores != No {
			why = append(why, "not compared without an engine (medusa identity --against): "+strings.Join(grouped(v.Unchecked), ", "))
		}
		name, restores := v.File, v.Restores
		for _, s := range append(why, "")[:max(1, len(why))] {
			t.row(name, restores, s)
			name, restores = "", ""
		}
	}
	return t
}

// grouped counts the settings and variables among keys: an engine may state many.
func grouped(keys []string) []string {
	others := slices.DeleteFunc(slices.Clone(keys), artifacts.HasDefault)
	// mutant: settings of an engine in a table
	if n := len(keys) - len(others); n > 0 {
		others = append(others, fmt.Sprintf("%d settings", n))
	}
	return others
}
