package interpose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// LibraryName is the file name of the interposer.
const LibraryName = "libmedusa_interpose.so"

// ErrNoLibrary says that the interposer was found nowhere.
var ErrNoLibrary = errors.New("no " + LibraryName)

// Mode is what the interposer does in the process (MEDUSA_MODE of preload/medusa.h).
type Mode string

// The modes.
const (
	Record Mode = "record" // write a trace
	Replay Mode = "replay" // keep the maps in memory, write nothing
)

// Config says how a process is to be started under the interposer.
type Config struct {
	Library        string // path of the interposer; empty: FindLibrary
	Mode           Mode
	TracePath      string // Record: the trace to create; it must not exist
	GapSeed        uint64 // Record: non-zero puts seeded gaps between allocations
	ExitAtReady    bool   // Record: the process ends with status 0 once phase "ready" is marked
	ExitAtIdentity bool   // Record: it does so at the first phase after its identity was marked
	Exact          Region // where device memory is to lie, with gaps further apart; zero: where the driver puts it
	ExtraEnv       []string
}

// Region is a range of device addresses (MEDUSA_EXACT of preload/medusa.h). An eighth of it is reserved for allocations,
// the rest is for reservations that the process makes itself.
type Region struct{ Base, Size uint64 }

// DefaultRegion lies where neither programs, their libraries nor the shadow memory of sanitizers lie. Its reserved part
// holds the memory of any one GPU several times over: freed addresses leave holes. The base's lower half is neither a small
// number nor a common float: beside half of an old address, four bytes of either would look like an address.
var DefaultRegion = Region{Base: 0x1200_6000_0000, Size: 4 << 40}

// Command returns the command that runs argv with the inherited environment, ExtraEnv and the interposer. The interposer
// comes first in LD_PRELOAD; what the environment preloads already stays behind it. Where the interposer has a folder
// "python" beside it, that is put in front of PYTHONPATH: the plug-in for engines in Python.
func Command(ctx context.Context, c Config, argv []string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("interpose command: it is empty")
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("interpose command %q: %w", argv[0], err)
	}
	library := c.Library
	if library == "" {
		var err error
		if library, err = FindLibrary(); err != nil {
			return nil, err
		}
	}
	library, err := filepath.Abs(library)
	if err == nil {
		_, err = os.Stat(library)
	}
	if err != nil {
		return nil, fmt.Errorf("interpose command %q: %w", argv[0], err)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = c.environ(append(Inherited(), c.ExtraEnv...), library)
	return cmd, nil
}

func (c Config) check() error {
	switch c.Mode {
	case Replay:
		if c.TracePath != "" || c.GapSeed != 0 || c.ExitAtReady {
			return errors.New("replay mode takes no trace, no gaps and no exit at ready")
		}
		return nil
	case Record:
		if c.TracePath == "" {
			return errors.New("record mode needs a trace path")
		}
		if _, err := os.Lstat(c.TracePath); err == nil {
			return fmt.Errorf("trace %q exists (the recorder creates it)", c.TracePath)
		}
		return nil
	}
	return fmt.Errorf("unknown mode %q", c.Mode)
}

// environ returns base with this configuration's settings of the interposer's variables.
func (c Config) environ(base []string, library string) []string {
	var env []string
	preload := []string{library}
	for _, kv := range WithPlugin(base, library) {
		if value, is := strings.CutPrefix(kv, "LD_PRELOAD="); !is {
			env = append(env, kv)
		} else if value != "" {
			preload = append(preload[:1], value)
		}
	}
	env = append(env, "LD_PRELOAD="+strings.Join(preload, ":"), "MEDUSA_MODE="+string(c.Mode))
	if c.Exact != (Region{}) {
		env = append(env, fmt.Sprintf("MEDUSA_EXACT=%#x:%#x", c.Exact.Base, c.Exact.Size))
	}
	if c.Mode != Record {
		return env
	}
	path := c.TracePath
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	env = append(env, "MEDUSA_TRACE="+path)
	if c.GapSeed != 0 {
		env = append(env, "MEDUSA_GAP_SEED="+strconv.FormatUint(c.GapSeed, 10))
	}
	if c.ExitAtReady {
		env = append(env, "MEDUSA_AT_READY=exit")
	}
	if c.ExitAtIdentity {
		env = append(env, "MEDUSA_AT_IDENTITY=exit")
	}
	return env
}

// WithPlugin returns env with the folder of the Python plug-in in front of PYTHONPATH, where there is one beside the interposer.
func WithPlugin(env []string, library string) []string {
	path := filepath.Join(filepath.Dir(library), "python")
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return env
	}
	folder := path
	var out []string
	for _, kv := range env {
		if value, found := strings.CutPrefix(kv, "PYTHONPATH="); !found {
			out = append(out, kv)
		} else if value != "" && value != folder {
			path = folder + ":" + value
		}
	}
	return append(out, "PYTHONPATH="+path)
}

// FindLibrary returns the interposer that MEDUSA_LIB names (the file or its folder), or the one in lib/ or ../lib/
// beside the running executable. Its error wraps ErrNoLibrary.
func FindLibrary() (string, error) {
	if lib := os.Getenv("MEDUSA_LIB"); lib != "" {
		if st, err := os.Stat(lib); err == nil && st.IsDir() {
			lib = filepath.Join(lib, LibraryName)
		}
		if _, err := os.Stat(lib); err != nil {
			return "", fmt.Errorf("find interposer: %w at MEDUSA_LIB: %w", ErrNoLibrary, err)
		}
		return lib, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find interposer: %w", err)
	}
	dir := filepath.Dir(exe)
	for _, p := range []string{filepath.Join(dir, "lib", LibraryName), filepath.Join(dir, "..", "lib", LibraryName)} {
		if _, err := os.Stat(p); err == nil {
			return filepath.Clean(p), nil
		}
	}
	return "", fmt.Errorf("find interposer: %w in lib or ../lib beside %s (build it with make, or set MEDUSA_LIB)", ErrNoLibrary, exe)
}
