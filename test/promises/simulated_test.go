package promises

import (
	"debug/elf"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

var update = flag.Bool("update", false, "write anew what the tests of this package compare")

// entryPoints returns from the simulated driver's objects, for each driver call, whether it has an implementation, or the weak
// one that reports NOT_SUPPORTED.
func entryPoints(t *testing.T) map[string]bool {
	t.Helper()
	testenv.Build(t, "lib")
	out := map[string]bool{}
	err := filepath.WalkDir(testenv.Path(t, "build/simulated/obj"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".o" {
			return err
		}
		object, err := elf.Open(path)
		if err != nil {
			return err
		}
		defer object.Close()
		symbols, err := object.Symbols()
		for _, s := range symbols {
			name, ok := strings.CutPrefix(s.Name, "sim_cu")
			if !ok || s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
				continue
			}
			out["cu"+name] = out["cu"+name] || elf.ST_BIND(s.Info) == elf.STB_GLOBAL
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var refusedPart = regexp.MustCompile(`call_unsupported_part\(c, "([^"]*)"\)`)

// refusedParts returns the cases that the driver's sources refuse although the call itself is simulated, by file.
func refusedParts(t *testing.T) []string {
	t.Helper()
	var parts []string
	files, err := filepath.Glob(testenv.Path(t, "simgpu/driver/*/*.c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var here []string
		for _, m := range refusedPart.FindAllStringSubmatch(string(source), -1) {
			if !slices.Contains(here, m[1]) {
				here = append(here, m[1])
			}
		}
		if len(here) > 0 {
			folder := filepath.Base(filepath.Dir(path))
			parts = append(parts, "* `"+folder+"/"+filepath.Base(path)+"`: "+strings.Join(here, ", "))
		}
	}
	return parts
}

// wrapped breaks a list into lines.
func wrapped(items []string) string {
	var text strings.Builder
	width := 0
	for i, item := range items {
		if i+1 < len(items) {
			item += ","
		}
		if width > 0 && width+len(item) > 138 {
			text.WriteString("\n")
			width = 0
		} else if width > 0 {
			text.WriteString(" ")
		}
		text.WriteString(item)
		width += len(item) + 1
	}
	return text.String()
}

// simgpu/README.md lists the driver calls that are not simulated, and the parts of simulated calls. A call that is implemented has to
// leave the list.
func TestNotSimulated(t *testing.T) {
	const begin, end = "<!-- not simulated: start -->\n", "\n<!-- end of not simulated -->"
	var missing []string
	all := entryPoints(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !all[name] {
			missing = append(missing, "`"+name+"`")
		}
	}
	if len(all) < 300 || len(missing) == 0 || len(missing) == len(all) {
		t.Fatalf("of %d driver calls, %d are not simulated", len(all), len(missing))
	}
	want := "Calls: " + wrapped(missing) + ".\n\nParts of other calls, in the words of the log:\n\n" + strings.Join(refusedParts(t), "\n")
	path := testenv.Path(t, "simgpu/README.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	got, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("simgpu/README.md has no list of what is not simulated")
	}
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("the list in simgpu/README.md is not what the simulator says (-update writes it):\n%s", want)
}

var simulatorVariable = regexp.MustCompile(`SIMGPU_[A-Z_]+`)

// The table of variables in simgpu/README.md has each that the simulated GPU reads, and no other.
func TestSimulatorVariables(t *testing.T) {
	read := map[string]bool{}
	for _, folder := range []string{"driver/*", "cudart", "standins"} {
		files, err := filepath.Glob(testenv.Path(t, "simgpu/"+folder+"/*.[ch]"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`"SIMGPU_[A-Z_]+"`).FindAllString(string(source), -1) {
				read[strings.Trim(name, `"`)] = true
			}
		}
	}
	page, err := os.ReadFile(testenv.Path(t, "simgpu/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range simulatorVariable.FindAllString(cells[1], -1) {
				listed[name] = true
			}
		}
	}
	if len(read) < 8 || !maps.Equal(read, listed) {
		t.Errorf("the simulated GPU reads %v, simgpu/README.md lists %v", slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(listed)))
	}
}
