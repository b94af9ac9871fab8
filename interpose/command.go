package interpose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"medusa/internal/contract"
)

// LibraryName is the file name of the interposer.
const LibraryName = "libmedusa_interpose.so"

// Mode is the interposer's mode in the process (MEDUSA_MODE of preload/medusa.h).
type Mode string

// The modes.
const (
	Record Mode = "record" // write a trace
	Replay Mode = "replay" // keep the maps in memory, write no trace
)

// Config configures a process under the interposer.
type Config struct {
	Library        string // path of the interposer; empty: FindLibrary
	Mode           Mode
	TracePath      string // Record: the trace to create; it must not exist
	GapSeed        uint64 // Record: non-zero puts seeded gaps between allocations
	ExitAtReady    bool   // Record: the process ends with status 0 once phase "ready" is marked
	ExitAtIdentity bool   // Record: it does so at the first phase after it marked its identity
	Exact          Region // region for device memory, with larger gaps if GapSeed is set; zero: the driver places memory
	ExtraEnv       []string
}

// Region is a range of device addresses (MEDUSA_EXACT of preload/medusa.h). Three and a half times the device's memory is
// reserved for allocations, and four times that with gaps. The rest is for reservations that the process makes itself.
type Region struct{ Base, Size uint64 }

// DefaultRegion avoids the addresses of programs, their libraries and the shadow memory of sanitizers. It has room for the memory
// of any one GPU and for a framework's reservations on it. The lower half of the base is neither a small number nor a common
// float. Otherwise four bytes of either, beside half of an old address, would look like an address.
var DefaultRegion = Region{Base: 0x1200_6000_0000, Size: 4 << 40}

// StretchedRegion is the region for a recording with gaps. It follows five regions of the default size, one for each attempt at a
// recording without gaps.
var StretchedRegion = Region{Base: DefaultRegion.Base + 5*DefaultRegion.Size, Size: 2 * DefaultRegion.Size}

// Command returns the command that runs argv with the inherited environment, ExtraEnv and the interposer. The interposer comes
// first in LD_PRELOAD, before libraries that the environment preloads already. If the interposer has a folder "python" beside it,
// that folder comes first in PYTHONPATH: it is the plug-in for engines in Python.
func Command(ctx context.Context, c Config, argv []string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("interpose command: the command is empty")
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
		err = CheckPlace(library)
	}
	if err == nil {
		_, err = os.Stat(library)
	}
	if err != nil {
		return nil, fmt.Errorf("interpose command %q: %w", argv[0], err)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = c.environ(append(contract.Inherited(), c.ExtraEnv...), library)
	return cmd, nil
}

// Environ returns the environment of Command's process, for a process that is started otherwise.
func (c Config) Environ() []string {
	return c.environ(append(contract.Inherited(), c.ExtraEnv...), c.Library)
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

// environ returns base with the interposer's variables set as configured.
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
	told := contract.Interposer{Mode: string(c.Mode), Exact: contract.Range(c.Exact)}
	if c.Mode == Record {
		told.Trace, told.GapSeed, told.AtReady, told.AtIdentity = c.TracePath, c.GapSeed, c.ExitAtReady, c.ExitAtIdentity
		if abs, err := filepath.Abs(c.TracePath); err == nil {
			told.Trace = abs
		}
	}
	return slices.Concat(env, []string{"LD_PRELOAD=" + strings.Join(preload, ":")}, told.Environ())
}

// WithPlugin returns env with the folder of the Python plug-ins first in PYTHONPATH, if there is one beside the interposer.
func WithPlugin(env []string, library string) []string {
	path, err := Plugins(library)
	if err != nil || path == "" {
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
