package yamlfile

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The library cuts numbers and changes texts without a word. Each such value is refused at its place; values that stay are not.
func TestExact(t *testing.T) {
	type inner struct {
		Slots int      `yaml:"slots"`
		Limit *int     `yaml:"limit"`
		Share float64  `yaml:"share"`
		Name  string   `yaml:"name"`
		Args  []string `yaml:"args"`
	}
	type file struct {
		Models []inner           `yaml:"models"`
		Env    map[string]string `yaml:"env"`
		Bytes  int64             `yaml:"bytes"`
		First  inner             `yaml:"first"`
	}
	for _, row := range []struct {
		text         string
		line, column int
		want         string // "" if it is accepted
	}{
		{"models:\n- slots: 1.5", 2, 10, "whole number, not 1.5"},
		{"models:\n- slots: '1.5'", 2, 10, "whole number, not 1.5"},
		{"models: [{limit: 2.5}]", 1, 18, "whole number, not 2.5"},
		{"bytes: -.inf", 1, 8, "whole number"},
		{"bytes: 9.223372036854775808e18", 1, 8, "whole number"},
		{"bytes: 1.5e0", 1, 8, "whole number"},
		{"first: &a {share: &x 0.5}\nmodels:\n- {slots: *x}", 1, 22, "whole number"},
		{"first: &a {slots: 2}\nmodels:\n- limit: 5\n  <<: *a", 4, 3, "merge keys (<<) are not read"},
		{"env: {A: a, <<: {A: b}}", 1, 13, "merge keys (<<) are not read"},
		{"bytes: 010", 1, 8, "010 begins with 0"},
		{"bytes: '+08'", 1, 8, "+08 begins with 0"},
		{"models: [{share: -01}]", 1, 18, "-01 begins with 0"},
		{"env: {010: a}", 1, 7, "read as 8 (quote it)"},
		{"bytes:", 1, 8, "no value"},
		{"first: {name: ~}", 1, 15, "no value"},
		{"env: {A: null}", 1, 10, "no value"},
		{"models:\n- args: [a, ]\n  limit:", 3, 10, "no value"},
		{"first: {args: [a, ~]}", 1, 19, "no value"},
		{"models:\n- name: 1.0", 2, 9, "read as 1 (quote it)"},
		{"models:\n- args: [a, 0.90]", 2, 13, "read as 0.9 (quote it)"},
		{"env: {A: 007}", 1, 10, "read as 7 (quote it)"},
		{"env: {A: 16_000}", 1, 10, "read as 16000 (quote it)"},
		{text: "bytes: 1e3\nenv: {A: 1.5, B: '007', C: 1e-3, D: true}\nmodels:\n- {slots: 3, limit: 2.0, share: 0.90, name: m1.0, args: [5, '0.90']}"},
		{text: "bytes: 0x10\nfirst: &a {slots: 2, share: 1.5}\nmodels: [*a, {share: 0.5, slots: 0}]"},
	} {
		_, err := Decode("f.yaml", []byte(row.text), &file{})
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", row.text, err)
			}
			continue
		}
		var at *Error
		if !errors.As(err, &at) || at.File != "f.yaml" || at.Line != row.line || at.Column != row.column || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %d:%d and %q", row.text, err, row.line, row.column, row.want)
		}
	}
}

// Hostile files end in time that grows with their size.
func TestHostileFilesEnd(t *testing.T) {
	type inner struct {
		Slots int      `yaml:"slots"`
		Args  []string `yaml:"args"`
		Inner []inner  `yaml:"inner"`
	}
	to := func(begin, unit, end string) string {
		n := (maxBytes/8 - len(begin)) / (len(unit) + len(end))
		return begin + strings.Repeat(unit, n) + strings.Repeat(end, n)
	}
	var steps, bomb strings.Builder
	for i := range 1400 {
		steps.WriteString(strings.Repeat(" ", i) + "inner:\n")
	}
	bomb.WriteString("args: &a [" + strings.Repeat("x,", 5000) + "]\ninner:\n" + strings.Repeat("- {args: *a}\n", 4000))
	for name, text := range map[string]string{
		"alias to its own anchor": "slots: &a *a", "list in itself": "inner: &a [*a]", "item in itself": "inner: [&a {inner: [*a]}]", "no anchor": "slots: *missing",
		"some brackets": "inner: " + strings.Repeat("[", 1000), "brackets": to("inner: ", "[", ""), "pairs of brackets": to("inner: ", "[", "]"), "braces": to("", "{inner: ", "}"), "lists on a line": to("inner:\n", "- ", ""),
		"keys on a line": to("", "? ", ""), "tags": to("slots: ", "!a ", ""), "anchors": to("slots: ", "&a ", ""), "steps": steps.String(), "alias bomb": bomb.String(),
		"quotes": to("args: [", "'", ""), "documents": to("", "---\n", ""), "comments": to("", "#\n", ""), "some empty items": "args:\n" + strings.Repeat("-\n", 24_000), "items": to("args:\n", "- a\n", ""), "empty items": to("args:\n", "-\n", ""),
		"keys": to("", "a:\n", ""), "commas": to("args: [", ",", ""), "colons": to("", ":", ""), "text": to("args: [", "a ", ""), "lines": to("slots: |\n", " a\n", ""),
		"folded lines": to("slots: a\n", " a\n", ""), "tabs": to("", "\t", ""), "carriage returns": to("", "\r", ""),
	} {
		began := time.Now()
		_, err := Decode("f.yaml", []byte(text), &inner{})
		if took := time.Since(began); err == nil || took > 20*time.Second {
			t.Errorf("%s: %v, %.100v", name, took, err)
		}
		for in, want := range map[string]string{"alias bomb": "aliases stand for", "some brackets": "nests too deeply", "steps": "nests too deeply"} {
			if name == in && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}
