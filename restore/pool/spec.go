package pool

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"medusa/internal/contract"
	"medusa/internal/yamlfile"
	"medusa/interpose"
)

// Spec is a configuration.
type Spec struct {
	Socket  string   `yaml:"socket"`  // its folder is made, with mode 0700
	Quiet   *float64 `yaml:"quiet"`   // seconds without imports after a start; default 30
	Engines []Engine `yaml:"engines"` //

	quiet time.Duration
}

// Engine describes the processes that are kept for one engine.
type Engine struct {
	Name        string            `yaml:"name"`
	Command     []string          `yaml:"command"`     // the command that they are for; empty: the command of the start whose own pool this is
	Spawned     bool              `yaml:"spawned"`     // they are for children that this command spawns with multiprocessing
	Modules     []string          `yaml:"modules"`     // imported in this order
	Environment map[string]string `yaml:"environment"` // in addition to the pool's
	Folder      string            `yaml:"folder"`      // working folder; default: the file's folder
	Size        int               `yaml:"size"`        // number of waiting processes; default 1
	Free        []string          `yaml:"free"`        // variables that imports which read the whole environment do not need

	program     *program
	environment map[string]string
	cmd         func() *exec.Cmd
}

const mostSize = 64

// Load reads a configuration. library is the interposer under which the processes start; empty: the one of [interpose.FindLibrary]. Paths are
// relative to the file's folder, and each engine's command is looked up.
func Load(path, library string) (*Spec, error) { return load(path, library, nil) }

// load reads a file. command is the command of a pool for one start, or nil: it is the default of engines without one, and the file then needs no
// socket.
func load(path, library string, command []string) (*Spec, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Spec{quiet: 30 * time.Second}
	file, err := yamlfile.Decode(path, data, s)
	if err == nil {
		err = s.complete(filepath.Dir(path), library, command)
	}
	if err != nil {
		return nil, yamlfile.Locate(path, file, err)
	}
	return s, nil
}

func bad(path string, err error) error { return &yamlfile.FieldError{Path: path, Err: err} }

func (s *Spec) complete(dir, library string, command []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if s.Socket == "" && command == nil {
		return bad("$.socket", errors.New("socket: name the socket's path"))
	}
	if s.Socket != "" && !filepath.IsAbs(s.Socket) {
		s.Socket = filepath.Join(dir, s.Socket)
	}
	if s.Quiet != nil {
		if *s.Quiet < 0 || *s.Quiet > 1e6 {
			return bad("$.quiet", errors.New("quiet: needs seconds, from 0 to 1000000"))
		}
		s.quiet = time.Duration(*s.Quiet * float64(time.Second))
	}
	if len(s.Engines) == 0 {
		return bad("$.engines", errors.New("engines: name at least one"))
	}
	names := map[string]bool{}
	for i := range s.Engines {
		e, at := &s.Engines[i], fmt.Sprintf("$.engines[%d]", i)
		if e.Name == "" || names[e.Name] {
			return bad(at+".name", errors.New("name: each engine needs one of its own"))
		}
		names[e.Name] = true
		if len(e.Command) == 0 {
			e.Command = command
		}
		if field, err := e.complete(dir, library); err != nil {
			return bad(at+"."+field, fmt.Errorf("%s: %w", field, err))
		}
	}
	return nil
}

func (e *Engine) complete(dir, library string) (field string, err error) {
	if e.Size == 0 {
		e.Size = 1
	}
	if e.Size < 0 || e.Size > mostSize {
		return "size", fmt.Errorf("needs a number from 1 to %d", mostSize)
	}
	if e.Folder == "" {
		e.Folder = dir
	} else if !filepath.IsAbs(e.Folder) {
		e.Folder = filepath.Join(dir, e.Folder)
	}
	if info, err := os.Stat(e.Folder); err != nil {
		return "folder", err
	} else if !info.IsDir() {
		return "folder", fmt.Errorf("%s is not a folder", e.Folder)
	}
	if len(e.Command) == 0 {
		return "command", errors.New("name the command that the processes are for")
	}
	path, err := exec.LookPath(e.Command[0])
	if err == nil {
		e.program, err = readProgram(path, e.Command)
	}
	if err != nil {
		return "command", err
	}
	for name := range e.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(e.Environment[name], "\x00") {
			return "environment", fmt.Errorf("%q is no variable", name)
		}
	}
	return "command", e.prepare(library)
}

// prepare makes the environment of a restored start, without the variables that differ from start to start.
func (e *Engine) prepare(library string) error {
	env := contract.Start{Run: contract.RunRestore}.Environ()
	for _, name := range slices.Sorted(maps.Keys(e.Environment)) {
		env = append(env, name+"="+e.Environment[name])
	}
	cfg := interpose.Config{Library: library, Mode: interpose.Replay, Exact: interpose.DefaultRegion, ExtraEnv: env}
	argv := slices.Concat([]string{e.program.Interpreter}, e.program.Options, []string{"-c", "from medusa_pool.waiter import main; main()"})
	found, err := interpose.Command(background, cfg, argv)
	if err != nil {
		return err
	}
	if found.Err != nil {
		return found.Err
	}
	final := found.Environ()
	if value, given := e.Environment[contract.EnvExact]; given {
		final = append(final, contract.EnvExact+"="+value)
	}
	e.environment = environ(packed(final))
	for _, kv := range final { // if a name is there twice, the last one counts here
		name, value, _ := strings.Cut(kv, "=")
		e.environment[name] = value
	}
	e.cmd = func() *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		for _, name := range slices.Sorted(maps.Keys(e.environment)) {
			cmd.Env = append(cmd.Env, name+"="+e.environment[name])
		}
		cmd.Dir = e.Folder
		return cmd
	}
	return nil
}
