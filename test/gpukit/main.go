// Command gpukit tries Medusa on a machine with an NVIDIA driver, in eleven steps of less than ten minutes each, the most telling
// first. It needs neither a network nor Go nor make: everything else comes with the folder that `make gpu-kit` builds.
//
// In: that folder, and a Python with torch for the steps about torch. Out: page.md, report.json and logs.tar.gz in one folder,
// and one last line that begins with "gpu-kit: PASS" or "gpu-kit: FAIL". Fails: exit code 1 if a step does not find the
// expected values, or cannot be made: a missing device or library is never passed over. Findings until then are kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kit is the folder, the device and the places of the results.
type Kit struct {
	Root, Out, Work string
	Device          string // cuda or simulated
	Python          string
	Parts           string // vLLM's packages
}

func main() {
	root, _ := os.Executable()
	out := os.Getenv("OUT")
	if out == "" {
		out = "gpu-kit-results"
	}
	k := &Kit{Root: filepath.Dir(root)}
	flag.StringVar(&k.Out, "out", out, "folder for page.md, report.json and logs.tar.gz")
	flag.StringVar(&k.Work, "work", filepath.Join(k.Root, "work"), "folder for artifacts and results that later calls need")
	flag.StringVar(&k.Device, "device", first(os.Getenv("DEVICE"), "cuda"), "cuda or simulated")
	flag.StringVar(&k.Python, "python", first(os.Getenv("PYTHON"), "python3"), "interpreter that has torch")
	flag.StringVar(&k.Parts, "vllm", first(os.Getenv("VLLM_PARTS"), filepath.Join(k.Root, "..", "..", "gpu-kit-vllm")), "folder with vLLM's packages, for step 11")
	chosen := flag.String("steps", "1-10", "steps to make, such as 1-3,6; 11 needs vLLM's packages, 12 a device for each of two ranks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	numbers, err := parseSteps(*chosen)
	if err == nil && k.Device != "cuda" && k.Device != "simulated" {
		err = fmt.Errorf("unknown device %q: want cuda or simulated", k.Device)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-kit:", err)
		os.Exit(2)
	}
	line, ok, err := k.call(ctx, k.limited(steps()), numbers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-kit:", err)
	}
	fmt.Println(line)
	if err != nil || !ok {
		os.Exit(1)
	}
}

// call makes steps in the given order and writes the report after each, so that a call that is ended leaves the results so far.
func (k *Kit) call(ctx context.Context, all []Step, numbers []int) (line string, ok bool, err error) {
	line = "gpu-kit: FAIL device=unknown steps="
	for _, dir := range []*string{&k.Root, &k.Out, &k.Work, &k.Parts} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return line, false, err
		}
	}
	if err := errors.Join(os.MkdirAll(k.Out, 0o755), os.MkdirAll(filepath.Join(k.Work, "logs"), 0o755)); err != nil {
		return line, false, err
	}
	report := Report{Device: k.Device, Date: time.Now().UTC().Format(time.DateOnly)}
	report.GPU, report.Driver = k.identify(ctx)
	var made []Result
	for _, n := range numbers {
		i := slices.IndexFunc(all, func(s Step) bool { return s.Number == n })
		if i < 0 {
			return line, false, fmt.Errorf("there is no step %d", n)
		}
		r := k.try(ctx, all[i])
		made = append(made, r)
		fmt.Printf("step %d (%s): %s in %.1f s %s\n", r.Step, r.Name, r.Verdict, r.Seconds, r.Reason)
		for _, row := range r.Rows {
			fmt.Printf("  %-44s %s\n", row.What, row.Found)
		}
		err := k.keep(r)
		if err == nil {
			report.Steps, err = k.kept(all)
		}
		if err == nil {
			err = k.write(report, all)
		}
		if err != nil {
			return line, false, err
		}
	}
	ok = len(made) > 0 && !slices.ContainsFunc(made, func(r Result) bool { return r.Verdict != pass })
	return report.line(made), ok, nil
}

// identify asks nvidia-smi for the device and its driver.
func (k *Kit) identify(ctx context.Context) (gpu, driver string) {
	if k.Device == "simulated" {
		return "simulated", "simulated"
	}
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").Output()
	name, version, found := strings.Cut(strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0]), ", ")
	if err != nil || !found {
		return "unknown", "unknown"
	}
	return name, version
}

// parseSteps reads numbers and ranges, separated by commas.
func parseSteps(text string) (out []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err := errors.Join(err, err2); err != nil || from < 1 || to < from {
			return nil, fmt.Errorf("steps %q: want numbers and ranges such as 1-3,6", text)
		}
		for n := from; n <= to; n++ {
			out = append(out, n)
		}
	}
	return out, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
