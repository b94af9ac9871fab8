// Package doctor examines a machine: whether the parts of Medusa exist and work together, which features the driver has, and
// which artifacts can be restored here.
//
// In: the probe's binary and the interposer, found or named. Out: a Report. The probe asks the driver, in a process of its own
// that runs under the interposer as an engine would. A failure there is a finding, not an error. Examine fails only if its
// context ends.
package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"medusa/artifacts"
	"medusa/artifacts/probe"
	"medusa/internal/cuda/probe/result"
	"medusa/interpose"
)

// Options select the artifacts to examine.
type Options struct {
	Artifacts []string                            // paths
	Relaxed   artifacts.Relaxed                   // as in restore
	Checked   func(path string) artifacts.Relaxed // differences that a check on this machine has allowed (supervisor.CheckedDrivers); nil: none
}

// Report is the result of Examine. Its JSON form only ever gains fields.
type Report struct {
	Parts     []Part         `json:"parts"`
	GPU       *result.Result `json:"gpu"` // null if the probe did not run
	Artifacts []Verdict      `json:"artifacts"`
	TooWide   []string       `json:"too_wide"` // privileges of this process that neither Medusa nor an engine needs; only in a pod, which can be without them
}

// Part is a part of Medusa on this machine.
type Part struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// OK says whether materializing and restoring can work here: no part is missing, and no feature that they need. An inconclusive
// feature does not count as missing.
func (r *Report) OK() bool {
	for _, p := range r.Parts {
		if !p.OK {
			return false
		}
	}
	return len(r.Missing(result.Restore)) == 0
}

// Missing lists the features with that need that the driver lacks.
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

// Examine makes all checks once.
func Examine(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Artifacts: []Verdict{}, TooWide: []string{}}
	if inPod() {
		r.TooWide = privilegesHere()
	}
	library, program := interposerPart(), probePart()
	if program.OK {
		r.GPU = r.ask(ctx, &program, &library)
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
	r.Parts = slices.Concat([]Part{library}, besides(library.Path), []Part{program, driver})
	for _, path := range o.Artifacts {
		relaxed := o.Relaxed
		if o.Checked != nil {
			relaxed = slices.Concat(relaxed, o.Checked(path))
		}
		r.Artifacts = append(r.Artifacts, r.judge(path, relaxed))
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

// besides are the parts beside the interposer that engines in C and Python load.
func besides(library string) []Part {
	session := Part{Name: "libmedusa.so"}
	vllm, torch := Part{Name: "plug-in vLLM"}, Part{Name: "plug-in PyTorch"}
	if library == "" {
		return nil // its own row says that
	}
	session.Path = filepath.Join(filepath.Dir(library), "libmedusa.so")
	if err := loadable(session.Path); err != nil {
		session.Detail = err.Error()
	}
	session.OK = session.Detail == ""
	folder, err := interpose.Plugins(library)
	if folder == "" && err == nil { // of a wheel: beside the package that holds the interposer
		folder = filepath.Join(filepath.Dir(library), "..", "..")
	}
	for part, name := range map[*Part]string{&vllm: "medusa_vllm", &torch: "medusa_graphs"} {
		part.Path = filepath.Join(folder, name)
		if _, missing := os.Stat(filepath.Join(part.Path, "__init__.py")); err != nil || missing != nil {
			part.Path, part.Detail = "", fmt.Sprintf("there is no %s in %s (make builds it)", name, filepath.Join(filepath.Dir(library), "python"))
		}
		part.OK = part.Detail == ""
	}
	return []Part{session, torch, vllm}
}

func probePart() Part {
	path, err := probe.Find()
	if err != nil {
		return Part{Name: "probe", Detail: err.Error()}
	}
	return Part{Name: "probe", OK: true, Path: path}
}

// ask runs the probe under the interposer, as an engine would run. If that fails, it runs the probe without it.
func (r *Report) ask(ctx context.Context, program, library *Part) *result.Result {
	if library.OK {
		cmd, err := interpose.Command(ctx, interpose.Config{Library: library.Path, Mode: interpose.Replay}, []string{program.Path})
		if err == nil {
			var out *result.Result
			if out, err = probe.Run(ctx, cmd); err == nil {
				if !out.Interposer {
					library.OK, library.Detail = false, "it was not loaded into a program that it was preloaded into"
				}
				return out
			}
		}
		library.OK, library.Detail = false, fmt.Sprintf("the probe does not run under it: %v", err)
	}
	out, err := probe.Run(ctx, exec.CommandContext(ctx, program.Path))
	if err != nil {
		program.OK, program.Detail = false, err.Error()
		return nil
	}
	return out
}

// Version formats a number of cuDriverGetVersion: 12080 is 12.8.
func Version(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }
