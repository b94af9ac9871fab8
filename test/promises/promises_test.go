// Package promises tests the promises of docs/promises.md to programs outside of this repository, and holds the pages that name tests to
// the tests that there are. Its goldens are written by hand, once: they have no part that the project generates.
package promises

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// Programs compiled against an earlier header go on working: layouts, constants and types of functions.
func TestHeadersKeepTheirLayout(t *testing.T) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	cmd := exec.Command(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"+testenv.Path(t, "interpose", "preload"),
		"-I"+testenv.Path(t, "cmd", "libmedusa"), filepath.Join("testdata", "layout.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each library exports the functions of its list, and no other of that prefix: each exported function is promised.
func TestLibrariesExportWhatIsPromised(t *testing.T) {
	for _, library := range []string{"libmedusa.so", "libmedusa_interpose.so"} {
		testenv.Build(t, "build/lib/"+library)
		f, err := elf.Open(testenv.Path(t, "build", "lib", library))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "medusa_") {
				got = append(got, s.Name)
			}
		}
		slices.Sort(got)
		golden, err := os.ReadFile(filepath.Join("testdata", strings.TrimSuffix(library, ".so")+".symbols"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(string(golden))
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s does not export %s any more", library, name)
			}
		}
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("%s exports %s, which its list does not have (what is exported is promised: add it, with its type in layout.c)", library, name)
			}
		}
	}
}

// Each function of a list has its type in layout.c.
func TestFunctionsHaveTheirTypes(t *testing.T) {
	layout, err := os.ReadFile(filepath.Join("testdata", "layout.c"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob(filepath.Join("testdata", "*.symbols"))
	if err != nil || len(lists) != 2 {
		t.Fatal(lists, err)
	}
	for _, list := range lists {
		names, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(names)) {
			if !strings.Contains(string(layout), name+"(") {
				t.Errorf("layout.c does not have %s", name)
			}
		}
	}
}
