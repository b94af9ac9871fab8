package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed files are the generator's output.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	files, _, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (run: go generate ./internal/contract)", name)
		}
	}
}

const minimal = "protocol 1\nheader a.h\nvariables start Start\n# doc\nvar MEDUSA_RUN Run text\n"

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown row", minimal + "vra MEDUSA_B\n", "line 6: unknown row"},
		{"a row without a name", minimal + "enum\n", "want a row with a name"},
		{"a member without a row", "\tkv 1\n" + minimal, "line 1: a member without a row"},
		{"enum", minimal + "enum a\n\tb c\n", "want a name and a number"},
		{"unknown type", minimal + "struct a\n\tb u7\n", `unknown type "u7"`},
		{"hidden padding", minimal + "struct a\n\tb u32\n\tc u64\n", "c is at byte 4"},
		{"padding at the end", minimal + "struct a\n\tb u64\n\tc u32\n", "its size of 12 bytes is not a multiple of 8"},
		{"a variable twice", minimal + "# doc\nvar MEDUSA_RUN Again text\n", "defined twice"},
		{"another meaning of nothing", minimal + "# doc\nvar MEDUSA_B Again text again\n", "used again without a definition"},
		{"another prefix", minimal + "# doc\nvar OTHER Other text\n", "not MEDUSA_*"},
		{"no meaning", minimal + "var MEDUSA_B B text\n", "no table above it"},
		{"no field", minimal + "# doc\nvar MEDUSA_B\n", "want the field of Start"},
		{"unknown type of a field", minimal + "# doc\nvar MEDUSA_B B tezt\n", `unknown type "tezt"`},
		{"unknown flag", minimal + "# doc\nvar MEDUSA_B B text inhrited\n", `unknown flag "inhrited"`},
		{"no protocol", "header a.h\n", "protocol and header are required"},
	} {
		if _, err := parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// Hand-written text around a declaration stays. A header without a place for the declaration is refused.
func TestReplace(t *testing.T) {
	header := "/* by hand */\n\n/* old\n * doc */\nstruct medusa_a {\n\tint b;\n};\nvoid f(struct medusa_a *a);\n"
	got, err := replace(header, "struct medusa_a", "/* new */\nstruct medusa_a {\n};\n")
	if want := "/* by hand */\n\n/* new */\nstruct medusa_a {\n};\nvoid f(struct medusa_a *a);\n"; err != nil || got != want {
		t.Errorf("%v, %q", err, got)
	}
	for _, text := range []string{"", header + header} {
		if _, err := replace(text, "struct medusa_a", ""); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}
