package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/restore/status"
)

// watched runs the engine and notices if the engine does not use Medusa, or has its plug-in switched off. Then no
// process of it opens a session, and no other part would report that it restored no graph. A server shows this long
// before its end: its process begins a capture without a mark, and the interposer writes that to a pipe. Other
// engines show it when they end.
func (o *Options) watched(ctx context.Context, cfg interpose.Config, d *desk) (int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd, err := interpose.Command(ctx, cfg, o.Argv)
	if err != nil {
		return 0, err
	}
	if d.pipe == "" {
		return o.begin(ctx, cmd)
	}
	pipe, err := os.OpenFile(d.pipe, os.O_RDWR, 0) // open for writing too: it has no end before it is closed
	if err != nil {
		return 0, err
	}
	var silent error
	var listening sync.WaitGroup
	listening.Go(func() {
		if n, _ := pipe.Read(make([]byte, 1)); n == 0 {
			return
		}
		d.bring()
		if silent = o.expectStatus(d.status, "captures graphs"); silent != nil {
			stop()
		}
	})
	brought := d.bringing()
	code, err := o.begin(ctx, cmd)
	brought()
	_ = pipe.Close()
	listening.Wait()
	if silent != nil {
		return 0, silent
	}
	// An engine that failed has its own reason.
	if err == nil && (code == 0 || ctx.Err() != nil) {
		// mutant: engine that knows nothing of Medusa
		err = o.expectStatus(d.status, "ended")
	}
	return code, err
}

// notFound is the exit status of a program for which the dynamic linker cannot load a library, as well as of a shell that does not find a program.
const notFound = 127

// unloaded returns why an engine that failed before any process of it had a session is to be started once more, natively: the dynamic linker of one
// of its programs may have refused the interposer. Then the engine never began.
func (o *Options) unloaded(code int, d *desk) error {
	// mutant: program that cannot load the interposer
	if code == 0 || d.status == "" || len(statusFiles(d.status)) > 0 {
		return nil
	}
	why, fatal := interpose.Unloadable(o.Argv[0], o.Library)
	if !fatal && code != notFound {
		return nil
	}
	if !fatal {
		why = errors.New("a program of it was not found, or cannot load the interposer")
	}
	return fmt.Errorf("%s ended with exit status %d without a session (%w)", filepath.Base(o.Argv[0]), code, why)
}

// expectStatus writes the status of an engine that wrote none. With Strict it is an error. If the engine could not write
// its status because the disk was full, expectStatus only says so.
func (o *Options) expectStatus(path, does string) error {
	if path == "" {
		return nil
	}
	if len(statusFiles(path)) > 0 {
		return nil
	}
	full := hasRoom(filepath.Dir(path))
	if _, err := os.Stat(path + status.Unwritten); err == nil && full == nil {
		full = errors.New("there was no room for it")
	}
	// mutant: a disk that is full when the status is written
	if full != nil {
		printable.Fprintf(o.Stderr, "medusa: read status (whether the engine restored is not known): %v\n", full)
		return nil
	}
	why := "it does not support Medusa, or its plug-in is switched off"
	if known, _ := interpose.Unloadable(o.Argv[0], o.Library); known != nil {
		why = known.Error()
	}
	err := fmt.Errorf("%s %s without a session (%s)", filepath.Base(o.Argv[0]), does, why)
	if o.Strict {
		return fmt.Errorf("restore engine: %w", err)
	}
	printable.Fprintf(o.Stderr, "medusa: native start: %v\n", err)
	if err := status.Write(path, &status.Status{Status: status.Native, Reason: status.NoSession, Pool: o.pooled, Detail: err.Error()}); err != nil {
		printable.Fprintf(o.Stderr, "medusa: %v\n", err)
	}
	return nil
}
