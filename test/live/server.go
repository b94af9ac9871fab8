package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"medusa/test/checkpoints"
)

// mark is a variable in the environment of every process of a run, by which processes that are left are found. Engines do not inherit unknown
// variables of Medusa, so its name is not one of Medusa's.
const mark = "LIVE_TEST"

// server is a running process that says where it listens.
type server struct {
	cmd   *exec.Cmd
	url   string
	mark  string
	ended chan error

	mu   sync.Mutex
	said bytes.Buffer
}

// output returns all that the process has printed so far.
func (s *server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (s *server) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.WriteString(line + "\n")
}

// start runs a program until it prints its address.
func (r *run) start(argv ...string) (*server, error) {
	s := &server{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1), mark: fmt.Sprintf("%s=%d.%d", mark, os.Getpid(), time.Now().UnixNano())}
	s.cmd.Env = append(r.environ(), s.mark)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		s.add(lines.Text())
		if i := strings.LastIndex(lines.Text(), "http://"); i >= 0 {
			s.url = lines.Text()[i:]
		}
	}
	go func() {
		for lines.Scan() {
			s.add(lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		s.ended <- s.cmd.Wait()
	}()
	if s.url == "" {
		return nil, fmt.Errorf("%s does not serve: %w\n%s", filepath.Base(argv[0]), <-s.ended, s.output())
	}
	return s, nil
}

// environ is that of the programs: the simulated GPU, and a cache of artifacts of the run's own.
func (r *run) environ() []string {
	// Contexts take memory, and a program in place of nvidia-smi tells how much.
	return append(os.Environ(), "PATH="+filepath.Join(filepath.Dir(r.build), "simgpu")+":"+os.Getenv("PATH"), "SIMGPU_PROCESSES="+filepath.Join(r.work, "processes"), "SIMGPU_OVERHEAD=charged",
		"LD_LIBRARY_PATH="+filepath.Join(r.build, "simulated")+":"+filepath.Join(r.build, "lib"),
		"MEDUSA_CACHE="+filepath.Join(r.work, "cache"), "TMPDIR="+filepath.Join(r.work, "tmp"))
}

// stop ends the process in order. No process of it may be left.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("after SIGTERM: %w\n%s", err, s.output())
		}
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		return errors.New("it does not end after SIGTERM")
	}
	return s.nothingLeft(0)
}

// kill ends the process as a crash would.
func (s *server) kill() error {
	_ = s.cmd.Process.Kill()
	<-s.ended
	return s.nothingLeft(patience)
}

// nothingLeft demands that no process of the run is left after a time.
func (s *server) nothingLeft(after time.Duration) error {
	for end := time.Now().Add(after); ; time.Sleep(5 * time.Millisecond) {
		left := s.processes("")
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return fmt.Errorf("%d processes are left", len(left))
		}
	}
}

// processes lists the processes of the run whose program has a name; all without one. Those that have ended and wait for their parent
// have no environment any more.
func (s *server) processes(program string) (pids []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range all {
		path := filepath.Join("/proc", e.Name(), "environ")
		pid, err := strconv.Atoi(e.Name())
		if err != nil || program == "" && pid == s.cmd.Process.Pid {
			continue
		}
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(s.mark+"\x00")) {
			continue
		}
		name, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if err == nil && (program == "" || filepath.Base(name) == program) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// materialize makes the artifact from which the models of the first checkpoint start.
func (r *run) materialize() error {
	argv := append([]string{"materialize", "-o", r.artifact(), "--"}, r.engine("run", checkpoints.Names[0])...)
	cmd := exec.Command(filepath.Join(r.build, "medusa"), append(argv, "--batches", "1")...)
	cmd.Env = r.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("materialize: %w\n%s", err, out)
	}
	return nil
}

func (r *run) artifact() string { return filepath.Join(r.work, "tiny.medusa") }

func (r *run) engine(command, checkpoint string) []string {
	return []string{filepath.Join(r.build, "reference"), command, "--model", filepath.Join(r.work, checkpoint),
		"--batch-sizes", "1,2,4,8", "--kv-cache-bytes", "16000000", "--enable-sleep-mode"}
}

// serve starts `medusa serve` on two GPUs. policy is YAML.
func (r *run) serve(policy string, models int) (s *server, log string, err error) {
	if err := r.configure(policy, "'0', '1'", models); err != nil {
		return nil, "", err
	}
	log = filepath.Join(r.work, "decisions.jsonl")
	s, err = r.start(filepath.Join(r.build, "medusa"), "serve", r.config(), "--decisions", log)
	return s, log, err
}

func (r *run) config() string { return filepath.Join(r.work, "serve.yaml") }

// configure writes a file with models of which two fit on a GPU: a third of them is stopped to make room, the others sleep.
func (r *run) configure(policy, gpus string, models int) error {
	var out strings.Builder
	fmt.Fprintf(&out, "listen: 127.0.0.1:0\ngpus: [%s]\nretry: 0\npolicy: %s\nhost_memory_gb: 1\nstate: state\nmodels:\n", gpus, policy)
	for i := range models {
		argv := append(r.engine("serve", checkpoints.Names[i%len(checkpoints.Names)]), "--served-model-name", "{name}", "--listen", "127.0.0.1:{port}")
		command, err := json.Marshal(argv) // which is YAML as well
		if err != nil {
			return err
		}
		artifact := ""
		if i%len(checkpoints.Names) == 0 {
			artifact = fmt.Sprintf("artifact: %q, ", r.artifact())
		}
		fmt.Fprintf(&out, "- {name: m%d, %smemory: 0.42, slots: 4, deadline: 10, start: 0.5, service: 0.2, sleep: %d, command: %s}\n", i, artifact, i%3, command)
	}
	return os.WriteFile(r.config(), []byte(out.String()), 0o600)
}

// replay demands that a log of decisions is made again, and that it is refused if one decision names another GPU.
func (r *run) replay(log string) error {
	out, err := r.replayed(log)
	if err != nil || !bytes.Contains(out, []byte("identical")) {
		return fmt.Errorf("replay decisions: %w\n%s", err, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	decided := bytes.LastIndex(data, []byte(`"decided":`))
	gpu := []byte(`"gpu":`)
	at := bytes.Index(data[max(decided, 0):], gpu)
	if decided < 0 || at < 0 {
		return errors.New("replay decisions: the log has none")
	}
	data[decided+at+len(gpu)] ^= 1 // 0 and 1 are GPUs
	changed := log + ".changed"
	if err := os.WriteFile(changed, data, 0o600); err != nil {
		return err
	}
	if out, err := r.replayed(changed); err == nil || !bytes.Contains(out, []byte("replay decision log: line ")) {
		return fmt.Errorf("replay a log with another decision: %w\n%s", err, out)
	}
	return nil
}

func (r *run) replayed(log string) ([]byte, error) {
	return exec.Command(filepath.Join(r.build, "medusa"), "simulate", "--replay", log).CombinedOutput()
}

// measured demands that each sleeping engine is known to keep memory on its GPU, though the configuration does not say so. It returns the number of
// sleeping engines.
func (s *server) measured() (sleepers int, err error) {
	lines, err := s.metrics()
	if err != nil {
		return 0, err
	}
	asleep, share := map[string]bool{}, map[string]float64{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		n, _ := strconv.ParseFloat(value, 64)
		if labels, is := strings.CutPrefix(name, "medusa_serve_gpu_share{"); is {
			share[strings.TrimSuffix(labels, "}")] = n
		}
		if labels, is := strings.CutPrefix(name, "medusa_serve_engine{"); is && n == 1 && strings.Contains(labels, `state="asleep_`) {
			labels, _, _ = strings.Cut(labels, ",state=")
			asleep[labels] = true
		}
	}
	for labels := range asleep {
		// A context of the simulated GPU takes 264 MiB of 8 GiB.
		if share[labels] < 0.03 || share[labels] > 0.1 {
			return 0, fmt.Errorf("the engine of %s keeps %g of its GPU asleep", labels, share[labels])
		}
	}
	return len(asleep), nil
}

// within is a context for one request.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}
