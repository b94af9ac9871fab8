package yamlfile

import (
	"errors"
	"strings"
	"testing"
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
		{"first: &a {slots: 2}\nmodels:\n- <<: *a\n  limit: 0.5", 4, 10, "whole number"},
		{"models:\n- name: 1.0", 2, 9, "read as 1 (quote it)"},
		{"models:\n- args: [a, 0.90]", 2, 13, "read as 0.9 (quote it)"},
		{"env: {A: 007}", 1, 10, "read as 7 (quote it)"},
		{"env: {A: 16_000}", 1, 10, "read as 16000 (quote it)"},
		{text: "bytes: 1e3\nenv: {A: 1.5, B: '007', C: 1e-3, D: true}\nmodels:\n- {slots: 3, limit: 2.0, share: 0.90, name: m1.0, args: [5, '0.90']}"},
		{text: "bytes: 0x10\nfirst: &a {slots: 2, share: 1.5}\nmodels: [*a, {<<: *a}]"},
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

// Hostile aliases end.
func TestExactEnds(t *testing.T) {
	type inner struct {
		Slots int     `yaml:"slots"`
		Inner []inner `yaml:"inner"`
	}
	for _, text := range []string{"slots: &a *a", "inner: &a [*a]", "inner: [&a {<<: *a}]", "slots: *missing"} {
		_, _ = Decode("f.yaml", []byte(text), &inner{})
	}
}
