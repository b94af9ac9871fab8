package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"medusa/interpose"
)

// incompatible is the exit code of `medusa restore --strict` for an artifact that does not fit the machine as it is.
const incompatible = 3

// refusals makes conditions under which medusa must not restore, or must not restore at the recorded addresses.
func refusals(a *Attempt) error {
	if err := a.materialize(nil, "reference", a.reference()...); err != nil {
		return err
	}
	before := []string{a.path("medusa"), "restore", "--strict", "--check=full", a.artifact("reference"), "--"}
	restore := slices.Concat(before, a.reference())
	if _, err := a.run(nil, restore...); err != nil {
		return fmt.Errorf("restored on a free device: %w", err)
	}
	a.row("free device", "restored")
	if err := a.busy(restore); err != nil {
		return err
	}
	got, err := a.inRegion(interpose.DefaultRegion, nil, fmt.Sprint(interpose.DefaultRegion.Base), "taken")
	a.row("base taken", "state %s (2: memory is the driver's), reason given: %s", got["state"], got["reason"])
	if err == nil && (got["state"] != "2" || got["reason"] != "1") {
		err = fmt.Errorf("with its base taken, the region has state %q and reason %q", got["state"], got["reason"])
	}
	if err != nil {
		return err
	}
	env, err := a.torchEnv()
	if err == nil {
		err = a.freed(env)
	}
	if err != nil || a.simulated() {
		return err
	}
	return a.sanitize(before)
}

// busy restores while another process holds the device's memory. Processes do not share the simulated GPU: there it is smaller.
func (a *Attempt) busy(restore []string) error {
	env := sized(a.Kit, nil, []string{"SIMGPU_MEMORY=1G"})
	if !a.simulated() {
		hog, err := a.start(nil, a.path("large"), "1", "0", "hold")
		if err != nil {
			return err
		}
		defer hog.end()
		if err := hog.until("held 1\n"); err != nil {
			return err
		}
	}
	_, code, err := a.exit(env, restore...)
	a.row("device without memory", "exit code %d (want %d)", code, incompatible)
	if err == nil && code != incompatible {
		err = fmt.Errorf("restored on a device without memory: exit code %d, want %d", code, incompatible)
	}
	return err
}

// sanitize has the tool start the engine: it attaches to programs that are linked dynamically, and the medusa command is not. Calls that
// fail are no errors here: the interposer asks the driver for a function's parameters until there are no more, and for the library of every
// function, of which some have none.
func (a *Attempt) sanitize(restore []string) error {
	tool, err := exec.LookPath("compute-sanitizer")
	if err != nil {
		for _, path := range []string{"/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"} {
			if tool, err = exec.LookPath(path); err == nil {
				break
			}
		}
	}
	if err != nil {
		return errors.New("compute-sanitizer is not installed")
	}
	out, err := a.run(nil, slices.Concat(restore, []string{tool, "--report-api-errors", "no", "--target-processes", "all", "--launch-timeout", "20"}, a.reference())...)
	a.row("compute-sanitizer", "%s", lastLine(out))
	if err == nil && !strings.Contains(out, "ERROR SUMMARY: 0 errors") {
		err = errors.New("compute-sanitizer reports errors, or none of its own words")
	}
	return err
}
