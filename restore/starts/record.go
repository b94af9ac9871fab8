package starts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/restore/starts/waterfall"
)

const pythonPath = "PYTHONPATH"

// record makes one more start. Its Python processes write to a folder of their own which modules they
// import.
func (o *Options) record(ctx context.Context, m Mode, dir string) (s waterfall.Start, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return s, err
	}
	if strings.ContainsRune(dir, os.PathListSeparator) {
		return s, fmt.Errorf("record modules: Python would split the path %q at its colon (set TMPDIR)", dir)
	}
	before, had := os.LookupEnv(pythonPath)
	path := dir
	if before != "" {
		path += string(os.PathListSeparator) + before
	}
	// Set the variable in this process's own environment: a pool that the start itself makes compares
	// this environment with that of the start.
	if info, err := os.Stat(m.pool); m.pool == "" || err == nil && info.Mode().IsRegular() {
		if err := os.Setenv(pythonPath, path); err != nil {
			return s, err
		}
		defer func() {
			if had {
				err = errors.Join(err, os.Setenv(pythonPath, before))
			} else {
				err = errors.Join(err, os.Unsetenv(pythonPath))
			}
		}()
	}
	recorder, err := waterfall.Prepare(dir)
	if err != nil {
		return s, err
	}
	s = waterfall.Start{Mode: m.Name, Began: time.Now()}
	st, err := o.start(ctx, m, filepath.Join(dir, "status.json"))
	processes, failed := recorder.Processes()
	if err = errors.Join(err, failed); err != nil {
		return s, err
	}
	s.Processes = processes
	for _, p := range st.Phases {
		s.Phases = append(s.Phases, waterfall.Mark{Name: p.Name, At: time.Duration(p.Began * float64(time.Second))})
	}
	return s, nil
}

// WriteReport writes the table and the recorded starts as a page.
func (r *Report) WriteReport(w io.Writer) error {
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		return err
	}
	return waterfall.Write(w, fmt.Sprintf("Starts of %s", strings.Join(r.Command, " ")), table.String(), r.Recorded)
}
