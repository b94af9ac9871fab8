package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/internal/private"
	"medusa/interpose"
	"medusa/restore/status"
)

// switchedOff returns the reason why every start is to be native now, or nil. MEDUSA_OFF is 1, or the path of a
// file. If the file exists, Medusa is off. The default is the file "off" in the cache. If the file cannot be
// looked up, the start is native.
func switchedOff() error {
	file := os.Getenv(contract.EnvOff)
	switch {
	case file == "":
		dir, err := store.Folder()
		if err != nil {
			return nil
		}
		file = filepath.Join(dir, "off")
	case !filepath.IsAbs(file):
		if on, err := strconv.ParseBool(file); err == nil && !on {
			return nil
		}
		return fmt.Errorf(contract.EnvOff+" is %s", file)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%s is there", file)
}

// reasonOf names the obstacle between artifact and engine, for the status.
func reasonOf(err error) string {
	var exposed *private.Error
	switch {
	case errors.Is(err, trust.ErrUntrusted), errors.As(err, &exposed):
		return status.Untrusted
	case errors.Is(err, store.ErrDigest), errors.Is(err, artifacts.ErrCorrupt):
		return status.Corrupt
	}
	return status.Missing
}

// native starts the engine without the interposer and without an artifact, and waits for it.
func (o *Options) native(ctx context.Context, d *desk, why *obstacle) (int, error) {
	cmd := exec.CommandContext(ctx, o.Argv[0], o.Argv[1:]...)
	cmd.Env = o.nativeEnviron(d, why)
	return o.wait(cmd)
}

// nativeEnviron says why a start is native, and writes the status before the engine starts. The plug-in only reports it: in the engine's metrics, and with
// the phases of the start.
func (o *Options) nativeEnviron(d *desk, why *obstacle) []string {
	printable.Fprintf(o.Stderr, "medusa: native start: %s: %v\n", why.reason, why.cause)
	told := contract.Start{Native: why.reason + ": " + printable.Line(why.cause.Error()), Status: d.status} // a variable cannot hold a NUL
	if d.status != "" {
		if err := status.Write(d.status, &status.Status{Status: status.Native, Reason: why.reason, Detail: why.cause.Error()}); err != nil {
			printable.Fprintf(o.Stderr, "medusa: %v\n", err)
		}
	}
	return interpose.WithPlugin(slices.Concat(contract.Inherited(), told.Environ(), o.Env), o.Library)
}
