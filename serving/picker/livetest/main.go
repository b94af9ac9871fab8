// Command livetest runs Envoy, medusa-picker and three agents as users do, on the simulated GPU, and checks the promises of
// docs/gateway.md.
//
// In: the programs below build/, and a Python environment with the openai package and Envoy. Out: a line for each part, and last
// "test-gateway: PASS ...". Fails: an answer differs from that of the engine alone, a request gets neither its answer nor a clear error, a
// log of decisions does not replay, or a process is left.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"medusa/internal/contract"
	"medusa/test/checkpoints"
)

// run is shared by all parts.
type run struct {
	build    string // folder
	venv     string // folder
	work     string // folder for files of this run
	mark     string // variable of all processes of the run
	requests int
	held     int
	hold     time.Duration
	bounded  time.Duration
	seed     uint64
	known    []question
}

func main() {
	var r run
	parts := flag.String("parts", "tokens,faults,held,bounds", "parts to run: tokens, faults, held, bounds, extension (needs its program), overhead")
	flag.StringVar(&r.build, "build", "build", "folder of the programs")
	flag.StringVar(&r.venv, "venv", "build/gateway/venv", "environment of Python")
	flag.IntVar(&r.requests, "requests", 160, "requests in the parts tokens and faults")
	flag.IntVar(&r.held, "held", 300, "requests that are held at once")
	flag.DurationVar(&r.hold, "hold", 4*time.Second, "how long they are held")
	flag.DurationVar(&r.bounded, "bounded", 15*time.Second, "for how long clients ask while a bound is measured")
	flag.Uint64Var(&r.seed, "seed", 1, "seed of prompts and moments")
	flag.Parse()
	if err := r.do(strings.Split(*parts, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "test-gateway: %v\n", err)
		os.Exit(1)
	}
}

func (r *run) do(parts []string) (err error) {
	for _, folder := range []*string{&r.build, &r.venv} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	if r.work, err = os.MkdirTemp("", "medusa-gateway-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	r.mark = "GATEWAY_TEST=" + filepath.Base(r.work)
	if err := checkpoints.Make(r.build, r.work); err != nil {
		return err
	}
	var all []string
	for _, name := range parts {
		part, ok := map[string]func() (string, error){"tokens": r.tokens, "faults": r.faults, "held": r.holding, "bounds": r.bounds, "extension": r.extension, "overhead": r.overhead}[name]
		if !ok {
			return fmt.Errorf("no part %q", name)
		}
		began := time.Now()
		result, err := part()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s: %s (%.0f s)\n", name, result, time.Since(began).Seconds())
		all = append(all, result)
	}
	fmt.Printf("test-gateway: PASS device=simulated %s\n", strings.Join(all, " "))
	return nil
}

// prepare makes the artifact and the questions once.
func (r *run) prepare() (err error) {
	if r.known != nil {
		return nil
	}
	argv := append([]string{"materialize", "-o", r.artifact(), "--"}, r.engine("run", checkpoints.Names[0])...)
	cmd := exec.Command(filepath.Join(r.build, "medusa"), append(argv, "--batches", "1")...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(r.build, "simulated")+":"+filepath.Join(r.build, "lib"),
		contract.EnvCache+"="+filepath.Join(r.work, "cache"), "TMPDIR="+r.work)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("materialize: %w\n%s", err, out)
	}
	r.known, err = r.learn()
	return err
}

func (r *run) artifact() string { return filepath.Join(r.work, "tiny.medusa") }

func (r *run) envoy() string {
	found, _ := filepath.Glob(filepath.Join(r.venv, "lib", "python3*", "site-packages", "envoy", "_bin", "envoy"))
	return append(found, "envoy")[0]
}

func (r *run) engine(command, checkpoint string) []string {
	return []string{filepath.Join(r.build, "reference"), command, "--model", filepath.Join(r.work, checkpoint),
		"--batch-sizes", "1,2,4,8", "--kv-cache-bytes", "16000000", "--enable-sleep-mode"}
}
