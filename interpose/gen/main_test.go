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
	files, _, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (run: go generate ./interpose)", name)
		}
	}
}

const minimal = "# doc\nrecord process 1 pid:u32\n# doc\nrecord end 28 records:u64\n"

func TestParseSpecRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"number used twice", minimal + "# doc\nrecord more 28 a:u8\n", "used twice"},
		{"unknown type", minimal + "# doc\nrecord more 29 a:u7\n", `unknown type "u7"`},
		{"undocumented", minimal + "\nrecord more 29 a:u8\n", "undocumented"},
		{"unclosed tuple", minimal + "# doc\nrecord more 29 a:[]{b:u8\n", "unclosed tuple"},
		{"tuple outside a list", minimal + "# doc\nrecord more 29 a:{b:u8}\n", "must be a list"},
		{"not a record", minimal + "event more 29 a:u8\n", "line 5"},
		{"no end", "# doc\nrecord process 1 pid:u32\n", "required"},
	} {
		_, err := parseSpec(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestHooksIncludePerThreadVariants(t *testing.T) {
	out, err := emitHooks("proc cuA cuA_v2 1 ptsz,hook (void)\nproc cuB cuB 1 - (void)\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"X(cuA_v2)", "X(cuA_v2_ptsz)"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "cuB") {
		t.Errorf("cuB is not flagged, yet listed:\n%s", out)
	}
}
