package main

import (
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		path, source string
		change       change
		want         string // "" if it must not apply
	}{
		{"x.go", "// mutant: x\nif v := f(); v > 3 {\n g()\n}", never, "if v := f(); false && (v > 3) {\n g()\n}"},
		{"x.go", "// mutant: x\nif v := f(); v > 3 {\n g()\n}", skip, "if false {\nif v := f(); v > 3 {\n g()\n}\n}"},
		{"x.go", "// mutant: x\nfor a || b {\n g()\n}", negate, "for !(a || b) {\n g()\n}"},
		{"x.go", "if a {\n} else if b { // mutant: x\n}", always, "if a {\n} else if true || (b) { // mutant: x\n}"},
		{"x.go", "switch {\ncase a: // mutant: x\n g()\n}", never, "switch {\ncase false && (a): // mutant: x\n g()\n}"},
		{"x.go", "switch v {\ncase a: // mutant: x\n g()\n}", never, ""},
		{"x.go", "switch v {\ncase 1: // mutant: x\n g(1)\n}", replace("1", "2"), "switch v {\ncase 2: // mutant: x\n g(1)\n}"},
		{"x.go", "// mutant: x\nreturn a", always, "return true || (a)"},
		{"x.go", "// mutant: x\nreturn a, b", always, ""},
		{"x.go", "// mutant: x\nreturn a, b", becomes("return nil, b"), "return nil, b"},
		{"x.go", "// mutant: x\nif a {\n a()\n}", replace("a", "b"), "if b {\n a()\n}"},
		{"x.go", "// mutant: x\na(a)", replace("a", "b"), ""},
		{"x.go", "// mutant: x\na(b)", replace("b", "b"), ""},
		{"x.go", "// mutant: x\na(b)", never, ""},
		{"x.go", "f(t{\n a: 1,\n // mutant: x\n b: 2, c: 3})", replace("2", "0"), "\n b: 0, c: 3})"},
		{"x.go", "f()\n// mutant: x", skip, ""},
		{"x.c", "/* mutant: x */\nif (f(\")\") && b)\n\tg();", never, "if (0 && (f(\")\") && b))\n\tg();"},
		{"x.c", "if (a) {\n} else if (b) { /* mutant: x */\n}", always, "if (a) {\n} else if (1 || (b)) { /* mutant: x */\n}"},
		{"x.c", "\t/* mutant: x */ \\\n\tg(';', /* ; */ a); \\\n\th();", skip, "\tif (0) { g(';', /* ; */ a); } \\\n\th();"},
		{"x.c", "/* mutant: x */\nwhile (a) /* a */\n\ta();", replace("a", "b"), "while (b) /* a */\n\ta();"},
		{"x.c", "/* mutant: x */\nfor (;;)\n\ta();", skip, ""},
		{"x.c", "/* mutant: x */\nfor (;a;)\n\ta();", replace("a", "b"), "for (;b;)\n\ta();"},
		{"x.c", "/* mutant: x */\n#define A(x) \\\n\tf(x) \\\n\tg()\nh()", replace("f(x)", "x"), "#define A(x) \\\n\tx \\\n\tg()\nh()"},
		{"x.py", "# mutant: x\nif a[1:] and b:\n    g()\n", never, "if False and ( a[1:] and b):\n    g()\n"},
		{"x.py", "# mutant: x\nif(a):\n    g()\n", negate, "if not ((a)):\n    g()\n"},
		{"x.py", "if a:\n    g()\nelif b:  # mutant: x\n    h()\n", always, "if a:\n    g()\nelif True or ( b):  # mutant: x\n    h()\n"},
		{"x.py", "    # mutant: x\n    g(a,  # not )\n      b)\n    h()\n", skip, "    if False: g(a,  # not )\n      b)\n    h()\n"},
		{"x.py", "# mutant: x\nreturn a\n", becomes("return None"), "return None\n"},
	} {
		source, want := c.source, c.want
		if strings.HasSuffix(c.path, ".go") {
			source = "package p\nfunc _() {\n" + source + "\n}\n"
		}
		found := scan(c.path, []byte(source))
		if len(found) != 1 || found[0].name != "x" {
			t.Errorf("%s: markers are %v", source, found)
			continue
		}
		m := mutant{Marker: "x", Change: c.change}
		got, err := m.mutate([]byte(source), found[0])
		if want == "" {
			if err == nil {
				t.Errorf("%s: %s gives %s, want an error", source, c.change, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", source, c.change, err)
			continue
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: %s gives %s, want %s", source, c.change, got, want)
		}
	}
}
