// Package probe runs the probe in a process of its own, for programs that bind no driver.
//
// In: the probe's binary, found beside the running executable or in the PATH. Out: the probe's result, and the identity factors
// of a device. Fails: if the probe is missing, does not end within a minute, or crashes with the driver.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"medusa/artifacts"
	"medusa/internal/cuda/probe/result"
)

// Name is the probe's file name.
const Name = "medusa-probe"

// DevicesOnly makes the probe list devices without creating a context.
const DevicesOnly = "--devices"

// patience bounds the driver's initialization, which takes seconds on machines with many GPUs.
const patience = time.Minute

// Find finds the probe beside the running executable, or else in the PATH.
func Find() (string, error) {
	if exe, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(exe), Name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath(Name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("no %s beside medusa or in PATH", Name)
}

// Run runs the command and reads the probe's result.
func Run(ctx context.Context, cmd *exec.Cmd) (*result.Result, error) {
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

// Devices lists the devices of the driver that an engine would use, without creating a context.
func Devices(ctx context.Context) (*result.Result, error) {
	path, err := Find()
	if err != nil {
		return nil, fmt.Errorf("find probe: %w", err)
	}
	r, err := Run(ctx, exec.Command(path, DevicesOnly))
	if err == nil && len(r.Devices) == 0 {
		err = fmt.Errorf("list devices: %s", r.Error)
	}
	return r, err
}

// Factors returns the factors that restore would find for a device (package restore, deviceFactors).
func Factors(driver int, d result.Device) artifacts.Identity {
	return artifacts.Identity{
		{Key: artifacts.KeyGPUName, Value: d.Name},
		{Key: artifacts.KeyComputeCapability, Value: d.ComputeCapability},
		{Key: artifacts.KeySMCount, Value: strconv.Itoa(d.SMCount)},
		{Key: artifacts.KeyGPUMemory, Value: strconv.FormatUint(d.Memory, 10)},
		{Key: artifacts.KeyDriverVersion, Value: strconv.Itoa(driver)},
	}
}
