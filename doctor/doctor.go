// Package doctor examines a machine: whether the parts of Medusa are there and work together, what the driver can do, and
// which artifacts would be restored here.
//
// In: the probe's binary and the interposer, found or named. Out: a Report. The driver is asked by the probe, in a process
// of its own that runs under the interposer as an engine would; what fails there is a finding, not an error. Examine fails
// only when its context ends.
package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"medusa/artifacts"
	"medusa/internal/cuda/probe/result"
	"medusa/interpose"
)

// ProbeName is the probe's file name.
const ProbeName = "medusa-probe"

// Options say what to examine.
type Options struct {
	Artifacts []string          // paths
	Relaxed   artifacts.Relaxed // as in restore
}

// Report is what was found. Its JSON form only ever gains fields.
type Report struct {
	Parts     []Part         `json:"parts"`
	GPU       *result.Result `json:"gpu"` // null where the probe did not run
	Artifacts []Verdict      `json:"artifacts"`
	TooWide   []string       `json:"too_wide"` // privileges of this process that nothing here needs
}

// Part is a part of Medusa on this machine.
type Part struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// OK says whether materializing and restoring can work here: all parts are there, and no feature that they need is missing.
// What could not be told does not count as missing.
func (r *Report) OK() bool {
	for _, p := range r.Parts {
		if !p.OK {
			return false
		}
	}
	return len(r.Missing(result.Restore)) == 0
}

// Missing lists the features with that need that the driver does not have.
func (r *Report) Missing(need result.Need) []string {
	var out []string
	if r.GPU != nil {
		for _, f := range r.GPU.Features {
			if f.Need == need && f.State == result.NotSupported {
				out = append(out, f.Name)
			}
		}
	}
	return out
}

// Examine looks at everything once.
func Examine(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Artifacts: []Verdict{}, TooWide: privilegesHere()}
	library, probe := interposerPart(), probePart()
	if probe.OK {
		r.GPU = r.ask(ctx, &probe, &library)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("examine: %w", err)
	}
	driver := Part{Name: "driver"}
	switch {
	case r.GPU == nil:
		driver.Detail = "not asked: the probe did not run"
	case !r.GPU.Reachable, len(r.GPU.Devices) == 0:
		driver.Detail = r.GPU.Error
	default:
		driver.OK, driver.Detail = true, fmt.Sprintf("CUDA %s, %d device(s)", Version(r.GPU.Driver), len(r.GPU.Devices))
		if r.GPU.Error != "" {
			driver.OK, driver.Detail = false, r.GPU.Error
		}
	}
	r.Parts = []Part{library, probe, driver}
	for _, path := range o.Artifacts {
		r.Artifacts = append(r.Artifacts, r.judge(path, o.Relaxed))
	}
	return r, nil
}

func interposerPart() Part {
	p := Part{Name: "interposer"}
	path, err := interpose.FindLibrary()
	if err != nil {
		p.Detail = err.Error()
		return p
	}
	p.OK, p.Path = true, path
	if err := loadable(path); err != nil {
		p.OK, p.Detail = false, err.Error()
	}
	return p
}

// probePart finds the probe beside the running executable or, with everything else that is installed, in the PATH.
func probePart() Part {
	p := Part{Name: "probe"}
	exe, err := os.Executable()
	if err == nil {
		if path := filepath.Join(filepath.Dir(exe), ProbeName); executable(path) {
			p.OK, p.Path = true, path
			return p
		}
	}
	if path, err := exec.LookPath(ProbeName); err == nil {
		p.OK, p.Path = true, path
		return p
	}
	p.Detail = fmt.Sprintf("no %s beside medusa or in PATH", ProbeName)
	return p
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// patience bounds a driver's initialisation, which takes seconds on machines with many GPUs.
const patience = time.Minute

// ask runs the probe under the interposer, as an engine would run, and without it where that fails.
func (r *Report) ask(ctx context.Context, probe, library *Part) *result.Result {
	if library.OK {
		cmd, err := interpose.Command(ctx, interpose.Config{Library: library.Path, Mode: interpose.Replay}, []string{probe.Path})
		if err == nil {
			var out *result.Result
			if out, err = run(ctx, cmd); err == nil {
				if !out.Interposer {
					library.OK, library.Detail = false, "it was not loaded into a program that it was preloaded into"
				}
				return out
			}
		}
		library.OK, library.Detail = false, fmt.Sprintf("the probe does not run under it: %v", err)
	}
	out, err := run(ctx, exec.CommandContext(ctx, probe.Path))
	if err != nil {
		probe.OK, probe.Detail = false, err.Error()
		return nil
	}
	return out
}

func run(ctx context.Context, cmd *exec.Cmd) (*result.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	bounded := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bounded.Env = cmd.Env
	var stdout, stderr bytes.Buffer
	bounded.Stdout, bounded.Stderr = &stdout, &stderr
	bounded.WaitDelay = time.Second
	if err := bounded.Run(); err != nil {
		if said := strings.TrimSpace(stderr.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, fmt.Errorf("run probe: %w", err)
	}
	var out result.Result
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		return nil, fmt.Errorf("read probe's answer: %w", errors.Join(err, fmt.Errorf("%.200q", stdout.String())))
	}
	return &out, nil
}

// Version writes a number as cuDriverGetVersion gives it: 12080 is 12.8.
func Version(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }
