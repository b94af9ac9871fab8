package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Report is all that is known about a device: the steps made so far, in this call and in earlier ones on the same machine.
type Report struct {
	Device string   `json:"device"`
	GPU    string   `json:"gpu"`
	Driver string   `json:"driver"`
	Date   string   `json:"date"`
	Steps  []Result `json:"steps"`
}

// line is the last line of a call, about the steps that the call made.
func (r Report) line(made []Result) string {
	verdict, steps := pass, make([]string, 0, len(made))
	for _, s := range made {
		steps = append(steps, fmt.Sprintf("%d:%s", s.Step, s.Verdict))
		if s.Verdict != pass {
			verdict = fail
		}
	}
	if len(made) == 0 {
		verdict = fail
	}
	return fmt.Sprintf("gpu-kit: %s device=%s steps=%s", verdict, r.GPU, strings.Join(steps, ","))
}

// page is the report for docs/results.
func (r Report) page(all []Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The first hour on %s\n\nGPU: %s. Driver: %s. Date: %s.\n", r.GPU, r.GPU, r.Driver, r.Date)
	if r.Device == "simulated" {
		b.WriteString("\nSimulated GPU: no figure here is a time on a GPU. GPU row missing: no machine with a GPU has made these steps.\n")
	}
	b.WriteString("\n| step | verdict | seconds | limit |\n|---|---|---:|---:|\n")
	for _, s := range all {
		if got := r.step(s.Number); got != nil {
			fmt.Fprintf(&b, "| %d. %s | %s | %.1f | %.0f |\n", s.Number, s.Name, got.Verdict, got.Seconds, got.Limit)
		} else {
			fmt.Fprintf(&b, "| %d. %s | not made | | %.0f |\n", s.Number, s.Name, s.Limit.Seconds())
		}
	}
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "\n## %d. %s: %s\n\nMade by `gpu-kit/gpu-kit -steps %d`.\n", s.Step, s.Name, s.Verdict, s.Step)
		if s.Reason != "" {
			fmt.Fprintf(&b, "\n%s\n", cell(s.Reason))
		}
		if len(s.Rows) > 0 {
			b.WriteString("\n| what | found |\n|---|---|\n")
		}
		for _, row := range s.Rows {
			fmt.Fprintf(&b, "| %s | %s |\n", cell(row.What), cell(row.Found))
		}
	}
	return b.String()
}

func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

func (r Report) step(number int) *Result {
	for i := range r.Steps {
		if r.Steps[i].Step == number {
			return &r.Steps[i]
		}
	}
	return nil
}

// keep saves a step's result beside its work, for later calls.
func (k *Kit) keep(r Result) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(k.Work, fmt.Sprintf("step-%02d.json", r.Step)), text, 0o644)
}

// kept reads the results that this and earlier calls saved for this kind of device.
func (k *Kit) kept(all []Step) (out []Result, err error) {
	for _, s := range all {
		text, err := os.ReadFile(filepath.Join(k.Work, fmt.Sprintf("step-%02d.json", s.Number)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r Result
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("read the result of step %d: %w", s.Number, err)
		}
		if r.Device == k.Device {
			out = append(out, r)
		}
	}
	return out, nil
}

// write leaves three files in the output folder: the page, the report, and the logs.
func (k *Kit) write(r Report, all []Step) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(k.Out, "report.json"), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(k.Out, "page.md"), []byte(r.page(all)), 0o644)
	}
	if err != nil {
		return err
	}
	return pack(filepath.Join(k.Out, "logs.tar.gz"), filepath.Join(k.Work, "logs"))
}

// most is how much of a log is kept: its end, which tells most about a failure.
const most = 4 << 20

func pack(path, dir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := tail(path, most)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: filepath.Join("logs", name), Mode: 0o644, Size: int64(len(text))})
		}
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	return errors.Join(err, w.Close(), z.Close(), f.Close())
}

func tail(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > n {
		_, err = f.Seek(-n, io.SeekEnd)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, n))
}
