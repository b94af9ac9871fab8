package pool

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/internal/yamlfile"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	library, python := filepath.Join(dir, "libmedusa_interpose.so"), filepath.Join(dir, "python3")
	for _, path := range []string{library, python} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	engine := "- {name: a, command: [" + python + ", a.py]"
	for _, row := range []struct{ text, want string }{
		{"socket: s\nengines:\n  " + engine + "}\n", ""},
		{"socket: s\nquiet: 0\nengines:\n  " + engine + ", size: 64, folder: ., spawned: true, environment: {A: b}}\n", ""},
		{"engines: []\n", "pool.yaml:1:8: socket"},
		{"socket: s\nengines: []\n", "pool.yaml:2:10: engines: name at least one"},
		{"socket: s\nquiet: -1\nengines:\n  " + engine + "}\n", "pool.yaml:2:8: quiet"},
		{"socket: s\nengines:\n  " + engine + "}\n  " + engine + "}\n", "pool.yaml:4:12: name: each engine needs one of its own"},
		{"socket: s\nengines:\n  " + engine + ", size: 65}\n", "size: needs a number from 1 to 64"},
		{"socket: s\nengines:\n  " + engine + ", size: -1}\n", "size: needs a number"},
		{"socket: s\nengines:\n  " + engine + ", folder: absent}\n", "no such file"},
		{"socket: s\nengines:\n  " + engine + ", folder: python3}\n", "is not a folder"},
		{"socket: s\nengines:\n  - {name: a}\n", "command: name the command"},
		{"socket: s\nengines:\n  - {name: a, command: [absent-program]}\n", "not found"},
		{"socket: s\nengines:\n  - {name: a, command: [" + python + "]}\n", "there is no program"},
		{"socket: s\nengines:\n  " + engine + ", environment: {A=B: c}}\n", `"A=B" is no variable`},
		{"socket: s\nengines:\n  " + engine + ", colour: red}\n", "colour"},
	} {
		path := filepath.Join(dir, "pool.yaml")
		if err := os.WriteFile(path, []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, library)
		var at *yamlfile.Error
		if row.want == "" && err != nil || row.want != "" && (!errors.As(err, &at) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %s", row.text, err, row.want)
		}
	}
}

// In a start's own pool, an engine without a command is for the start's
// command.
func TestSingleCommand(t *testing.T) {
	dir := t.TempDir()
	library, python, file := filepath.Join(dir, "libmedusa_interpose.so"), filepath.Join(dir, "python3"), filepath.Join(dir, "pool.yaml")
	for _, path := range []string{library, python} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{python, "a.py", "--port", "1"}
	for _, row := range []struct {
		text string
		want []string // names of the engines, or the error
	}{
		{"engines: [{name: a}, {name: b, spawned: true, modules: [m]}]", []string{"a", "b"}},
		{"socket: s\nengines: [{name: b, spawned: true}, {name: a}]", []string{"b", "a"}},
		{"engines: [{name: a}, {name: b, spawned: true, command: [" + python + ", a.py, --port, '2']}]", []string{"a"}},
		{"engines: [{name: b, spawned: true}]", []string{"no engine there has this command"}},
		{"engines: [{name: a}, {name: a}]", []string{"pool.yaml:1:29: name: each engine needs one of its own"}},
	} {
		if err := os.WriteFile(file, []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := Single(file, library, command, filepath.Join(dir, "socket"), dir, io.Discard)
		if err != nil {
			if !strings.Contains(err.Error(), row.want[0]) {
				t.Errorf("%s: %v, want %v", row.text, err, row.want)
			}
			continue
		}
		var got []string
		for _, e := range p.engines() {
			got = append(got, e.Name)
			if !slices.Equal(e.Command, command) {
				t.Errorf("%s: engine %s is for %v", row.text, e.Name, e.Command)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: engines %v, want %v", row.text, got, row.want)
		}
	}
}

// The processes start as a restored engine does, with the file's variables.
func TestEnvironmentOfProcesses(t *testing.T) {
	dir := t.TempDir()
	library, python := filepath.Join(dir, "libmedusa_interpose.so"), filepath.Join(dir, "python3")
	for _, path := range []string{library, python} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OF_THE_POOL", "1")
	t.Setenv("MEDUSA_STATUS", "of another start")
	e := &Engine{Name: "a", Command: []string{python, "-u", "a.py"}, Environment: map[string]string{"OMP_NUM_THREADS": "3", "MEDUSA_EXACT": "0x200000:0x200000"}}
	if _, err := e.complete(dir, library); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"OF_THE_POOL": "1", "OMP_NUM_THREADS": "3", "MEDUSA_MODE": "replay", "MEDUSA_RUN": "restore",
		"MEDUSA_EXACT": "0x200000:0x200000", "LD_PRELOAD": library, "MEDUSA_STATUS": ""} {
		if got := e.environment[name]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	cmd := e.cmd()
	if got := environ(packed(cmd.Env)); got["MEDUSA_EXACT"] != "0x200000:0x200000" || len(got) != len(e.environment) {
		t.Errorf("the command has %v", cmd.Env)
	}
	if cmd.Args[1] != "-u" || cmd.Dir != dir {
		t.Errorf("got %q in %s", cmd.Args, cmd.Dir)
	}
}
