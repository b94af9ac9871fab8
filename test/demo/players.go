package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// batchSizes are vLLM's 35: 1, 2, 4, 8, 16 ... 256.
func batchSizes() []int {
	sizes := []int{1, 2, 4}
	for b := 8; b <= 256; b += 8 {
		sizes = append(sizes, b)
	}
	return sizes
}

// players knows the programs of the demo and the environment that gives them their device.
type players struct {
	device, model         string
	dir                   string // logs, status and artifact
	medusaPath, reference string
	status                string
	env                   []string
}

func newPlayers(device, model, build string) (*players, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	p := &players{device: device, model: model, dir: filepath.Join(build, "demo"),
		medusaPath: filepath.Join(build, "medusa"), reference: filepath.Join(build, "reference")}
	p.status = filepath.Join(p.dir, "status.json")
	if err := os.RemoveAll(p.dir); err != nil {
		return nil, err
	}
	p.env = os.Environ()
	switch device {
	case "simulated":
		p.env = append(p.env, "LD_LIBRARY_PATH="+filepath.Join(build, "simulated"))
	case "cuda":
		p.env = append(p.env, "LD_PRELOAD="+filepath.Join(build, "lib", "calllog", "libcuda.so.1"))
	default:
		return nil, fmt.Errorf("unknown device %q: simulated or cuda", device)
	}
	return p, os.MkdirAll(p.dir, 0o755)
}

// log returns the variable that makes the device write its call log, and the file.
func (p *players) log(name string) (env, path string) {
	path = filepath.Join(p.dir, name+".calls")
	if p.device == "cuda" {
		return "CALLLOG=" + path, path
	}
	return "SIMGPU_CALL_LOG=" + path, path
}

func (p *players) medusa(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.medusaPath, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("medusa %s: %w", args[0], err)
	}
	return nil
}

// workload is the engine command whose tokens are compared: other prompts than the self test's, distinct per slot.
func (p *players) workload() []string {
	var runs []string
	for _, b := range batchSizes() {
		runs = append(runs, fmt.Sprintf("%d:%d", b, steps(b)))
	}
	return []string{p.reference, "run", "--model", p.model, "--batches", strings.Join(runs, ","), "--seed", "20250330", "-o", "json"}
}

// decoded is the engine's output about one run.
type decoded struct {
	Device string       `json:"device"`
	Start  string       `json:"start"`
	Graphs int          `json:"graphs"`
	Nodes  int          `json:"nodes"`
	Stages []stage      `json:"stages"`
	Runs   []decodedRun `json:"runs"`

	calls string // the call log
}

type stage struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

type decodedRun struct {
	Batch  int     `json:"batch"`
	Steps  int     `json:"steps"`
	Tokens [][]int `json:"tokens"`
}

func (p *players) decode(ctx context.Context, name string, argv []string) (*decoded, error) {
	env, calls := p.log(name)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(p.env, env), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	d := &decoded{calls: calls}
	if err := json.Unmarshal(out.Bytes(), d); err != nil {
		return nil, fmt.Errorf("decode %s: read result: %w", name, err)
	}
	return d, nil
}

func printStages(w io.Writer, native, restored []stage) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tnative ms\trestored ms\t")
	var sumNative, sumRestored float64
	for _, n := range native {
		for _, r := range restored {
			if r.Name == n.Name {
				fmt.Fprintf(t, "%s\t%.1f\t%.1f\t\n", n.Name, n.MS, r.MS)
				sumNative, sumRestored = sumNative+n.MS, sumRestored+r.MS
			}
		}
	}
	fmt.Fprintf(t, "total\t%.1f\t%.1f\t\n", sumNative, sumRestored)
	t.Flush()
}
