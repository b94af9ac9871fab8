package main

import (
	"fmt"
	"regexp"
	"strings"
)

// trial is a command of ours on a machine that has a driver and no GPU.
type trial struct {
	name string
	argv []string
	exit int
	says string // in exactly one line of its outputs; no other line may name an error of the driver
}

const noDevice = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"

// trials lists the commands; artifact was made on the simulated GPU.
func trials(build, model, artifact, scratch string) []trial {
	medusa, probe := build+"/medusa", build+"/medusa-probe"
	engine := []string{build + "/reference", "run", "--model", model, "--batches", "1"}
	command := func(name string, flags ...string) []string {
		return append(append(append([]string{medusa, name}, flags...), "--"), engine...)
	}
	return []trial{
		{"medusa doctor", []string{medusa, "doctor"}, 1, noDevice},
		{"medusa doctor ARTIFACT", []string{medusa, "doctor", artifact}, 1, noDevice},
		{"medusa-probe", []string{probe}, 0, noDevice},
		{"medusa-probe --devices", []string{probe, "--devices"}, 0, noDevice},
		{"engine", engine, 1, noDevice},
		{"medusa materialize", command("materialize", "-o", scratch+"/none.medusa"), 1, noDevice},
		{"medusa restore", command("restore", artifact), 1, noDevice},
		{"medusa restore --strict", command("restore", "--strict", artifact), 1, noDevice},
		{"medusa verify", command("verify", artifact), 1, noDevice},
		{"medusa identity", command("identity"), 1, noDevice},
		{"medusa bench", command("bench", "-n", "1", artifact), 1, noDevice},
		{"conformance", []string{build + "/conformance"}, 2, "cuKernelGetLibrary|CUDA_ERROR_NO_DEVICE"},
	}
}

// broken must not occur in any output.
var broken = regexp.MustCompile(`(?i)panic|goroutine \d|SIG[A-Z]{3,}|segmentation|core dumped|signal:|AddressSanitizer|stack smashing|%!`)

// judge describes a wrong end of a command; out is both of its outputs.
func (t trial) judge(exit int, out string) error {
	if exit != t.exit {
		return fmt.Errorf("%s: exit code %d, want %d: %s", t.name, exit, t.exit, strings.TrimSpace(out))
	}
	if bad := broken.FindString(out); bad != "" {
		return fmt.Errorf("%s: its output has %q: %s", t.name, bad, out)
	}
	says, n := regexp.MustCompile(t.says), 0
	for line := range strings.Lines(out) {
		if says.MatchString(line) {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%s: %d lines name the cause, want one: %s", t.name, n, strings.TrimSpace(out))
	}
	return nil
}
