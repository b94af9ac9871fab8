package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Meter asks nvidia-smi for the GPU memory of processes. Contexts, code and the memory that a sleeping engine keeps are included.
type Meter struct {
	path, gpu string
}

// NewMeter makes a Meter of a GPU. gpu is as in CUDA_VISIBLE_DEVICES, in the order of the PCI bus. It fails if the machine has no nvidia-smi.
func NewMeter(gpu string) (*Meter, error) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, fmt.Errorf("find nvidia-smi: %w", err)
	}
	return &Meter{path, gpu}, nil
}

// meterLimit bounds one call of nvidia-smi. If no process uses the driver, the driver loads first.
const meterLimit = 10 * time.Second

// Share returns the share of the GPU's memory that some processes have together. It fails if nvidia-smi shows none of them. Within a container,
// nvidia-smi does not show the processes of other containers.
func (m *Meter) Share(ctx context.Context, pids []int) (float64, error) {
	total, err := m.ask(ctx, "--query-gpu=memory.total")
	if err != nil {
		return 0, err
	}
	apps, err := m.ask(ctx, "--query-compute-apps=pid,used_memory")
	if err != nil {
		return 0, err
	}
	return share(total, apps, pids)
}

func (m *Meter) ask(ctx context.Context, question string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, meterLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.path, "-i", m.gpu, question, "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask nvidia-smi %s of GPU %s: %w", question, m.gpu, err)
	}
	return string(out), nil
}

// share reads the answers: the GPU's memory in MiB, and lines "PID, MiB".
func share(total, apps string, pids []int) (float64, error) {
	all, err := strconv.ParseFloat(strings.TrimSpace(total), 64)
	if err != nil || !(all > 0) {
		return 0, fmt.Errorf("read memory of a GPU: %q is no number of MiB", strings.TrimSpace(total))
	}
	ours := map[int]bool{}
	for _, pid := range pids {
		ours[pid] = true
	}
	sum, seen := 0.0, false
	for line := range strings.Lines(apps) {
		first, second, _ := strings.Cut(strings.TrimSpace(line), ",")
		pid, err := strconv.Atoi(first)
		if err != nil || !ours[pid] {
			continue
		}
		mib, err := strconv.ParseFloat(strings.TrimSpace(second), 64)
		if err != nil || !(mib >= 0 && mib <= all) {
			return 0, fmt.Errorf("read memory of process %d: %q is no number of MiB of %g", pid, strings.TrimSpace(second), all) // "[N/A]" in some virtual machines
		}
		sum, seen = sum+mib, true
	}
	if !seen {
		return 0, errors.New("read memory of a GPU: no process of the engine has any")
	}
	return min(sum/all, 1), nil
}
