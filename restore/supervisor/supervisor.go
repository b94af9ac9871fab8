// Package supervisor starts an engine whose graphs are to be restored, and starts it again without Medusa if
// restored graphs cost it its device.
//
// In: an artifact, by file, digest, name or identity, the policy that says whether it may be used (package artifacts/trust), and an
// engine command. Out: the engine's exit code, and before it the artifact's directories below the cache or at the user's places, if the
// artifact is for a device of this machine. The engine's own process decides whether it restores (package restore). A sticky device
// error after a restored launch ends that process with status.ExitSticky. Then the package sets the artifact aside and starts the
// engine natively. An engine of several ranks that ends before all of them are ready is started natively, too: a rank that dies or is
// silent takes the others with it.
//
// The package imports no driver binding, so that the tool that uses it runs anywhere.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/restore/status"
)

// Options describe a start.
type Options struct {
	Artifact Choice
	Verify   string            // file of the public key that must have signed the artifact; empty: the policy decides
	Dirs     map[string]string // places of the artifact's directories, by name; of others, caches go into the cache
	Relax    artifacts.Relaxed // differences that are allowed
	Argv     []string          // the engine's command, unchanged
	Library  string            // libmedusa_interpose.so
	Strict   bool              // end instead of starting natively
	Check    string            // full, canary or none: the checks before ready
	Lazy     bool              // build graphs at their first use
	Relocate bool              // leave device memory at the driver's addresses
	Status   string            // file for the JSON status; empty: none that outlives the start
	Pool     string            // socket of a pool that may have a process for the engine, or a pool's file for one of this start's own; empty: the start is cold
	Weights  []string          // files and folders to read into the page cache while the engine imports
	Env      []string          // more of the engine's environment
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer // lines of this package too, while the engine runs

	pooled   string // of a start with Pool, for the status
	noPool   error  // why a start with a pool's file has no pool
	ownsPool bool   // the pool is this start's own
}

// Run starts the engine and waits for it. A context that ends (SIGINT, SIGTERM) reaches the engine as SIGTERM, and its
// exit code is passed on as always.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	if len(o.Argv) > 0 {
		if _, err := exec.LookPath(o.Argv[0]); err != nil {
			return 0, fmt.Errorf("restore engine: %w", err)
		}
	}
	off := switchedOff()
	d, err := o.openDesk()
	defer d.close()
	if off == nil {
		defer o.ownPool(d)()
		defer o.readWeights()()
	}
	if err != nil {
		if o.Strict && off == nil {
			return 0, fmt.Errorf("restore engine: %w", err)
		}
		printable.Fprintf(o.Stderr, "medusa: %v\n", err)
	}
	artifact, cfg, release, err := o.prepare(ctx, d, off)
	defer release()
	var why *obstacle
	if errors.As(err, &why) {
		return o.native(ctx, d, why)
	}
	if err != nil {
		return 0, err
	}
	code, err := o.watched(ctx, cfg, d)
	if err == nil && ctx.Err() == nil {
		if failed := o.unloaded(code, d); failed != nil && o.Strict {
			return 0, fmt.Errorf("restore engine: %w", failed)
		} else if failed != nil {
			return o.native(ctx, d, &obstacle{status.NoSession, failed})
		}
	}
	if err != nil || o.Strict {
		return code, err
	}
	if !lostDevice(code, d.status) {
		// mutant: ranks that ended before all were ready
		if ended := d.endedEarly(code); ended != nil && ctx.Err() == nil {
			return o.native(ctx, d, &obstacle{status.Ended, ended})
		}
		return code, nil
	}
	o.setAside(artifact)
	cmd := exec.CommandContext(ctx, o.Argv[0], o.Argv[1:]...)
	cmd.Env = contract.Inherited()
	return o.wait(cmd)
}

// lostDevice reports whether restored graphs cost the engine its device. A server whose engine is another process has an exit
// code of its own; the status is the engine's.
func lostDevice(code int, path string) bool {
	if code == status.ExitSticky {
		return true
	}
	return code != 0 && path != "" && slices.ContainsFunc(statusFiles(path), func(path string) bool {
		st, err := status.Read(path)
		return err == nil && st.Status == status.Sticky
	})
}

// statusFiles lists the status files that there are: the start's, and those of ranks or of engines, which may come in any order.
func statusFiles(path string) []string {
	var files []string
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path))
		// mutant: status of one of several engines
		if ok && (rest == "" || ofSeveral.MatchString(rest)) {
			files = append(files, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return files
}

// ofSeveral is what follows the name of the start's status in that of a rank or an engine.
var ofSeveral = regexp.MustCompile(`^\.[0-9]+$`)

// region is the intended place of the engine's device memory: the place of the artifact's recording. An artifact that only the
// engine's process chooses has, as a rule, the default one.
func (o *Options) region(artifact string) interpose.Region {
	if o.Relocate {
		return interpose.Region{}
	}
	if o.Artifact.Auto {
		return interpose.DefaultRegion
	}
	m, err := artifacts.ReadManifest(artifact)
	if err != nil {
		return interpose.Region{} // the engine's process reports the reason
	}
	return interpose.Region(m.Region)
}

// wait runs the command with the caller's streams. A process that a signal ended counts as 128 plus its number, as in
// a shell.
func (o *Options) wait(cmd *exec.Cmd) (int, error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	err := interpose.Run(cmd, interpose.Terminate)
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return 0, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() { // of the guard
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// setAside renames an artifact that cost an engine its device, so that the next start does not try it again. If it
// cannot (an image is read-only), it says so.
func (o *Options) setAside(artifact string) {
	if o.Artifact.Auto {
		printable.Fprintf(o.Stderr, "medusa: native start: restored graphs left a sticky device error; the artifact stays in %s\n", artifact)
		return
	}
	aside := artifact + ".aside"
	if err := os.Rename(artifact, aside); err != nil {
		printable.Fprintf(o.Stderr, "medusa: native start: restored graphs left a sticky device error; set artifact aside: %v\n", err)
		return
	}
	printable.Fprintf(o.Stderr, "medusa: native start: restored graphs left a sticky device error; artifact set aside as %s\n", aside)
}
