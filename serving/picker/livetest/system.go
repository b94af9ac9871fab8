package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"medusa/test/checkpoints"
)

//go:embed envoy.yaml listeners.yaml ask.py
var files embed.FS

// gpu is the address of an agent's port.
type gpu struct {
	Host string
	Port int
}

func (g gpu) String() string { return fmt.Sprintf("%s:%d", g.Host, g.Port) }

// system is Envoy, a picker and three agents with a GPU each.
type system struct {
	run *run

	GPUs        []gpu
	Admin, In   int // ports
	pickerAdmin int
	Picker      string // address, as Envoy's configuration has it

	// For the listener.
	Version               int
	Cluster, ResponseBody string
	Listeners             string // path

	entry func(model int) string // fields of a model in the picker's file, besides its name

	envoy, picker *process
	agents        []*process
	logs          int
}

// newSystem chooses ports and writes files. It starts no program.
func (r *run) newSystem() (*system, error) {
	s := &system{run: r, Picker: fmt.Sprintf("{pipe: {path: %q}}", filepath.Join(r.work, "picker.sock")), entry: func(int) string { return "deadline: 10" }, Cluster: "gpus", ResponseBody: "FULL_DUPLEX_STREAMED", Listeners: filepath.Join(r.work, "lds", "listeners.yaml")}
	hosts := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	shared, err := freePort(hosts...) // the same port on each host, as the pods of a pool have it
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		s.GPUs = append(s.GPUs, gpu{host, shared})
	}
	for _, p := range []*int{&s.Admin, &s.In, &s.pickerAdmin} {
		port, err := freePort("127.0.0.1")
		if err != nil {
			return nil, err
		}
		*p = port
	}
	s.agents = make([]*process, len(s.GPUs))
	if err := os.MkdirAll(filepath.Dir(s.Listeners), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.work, "secret"), []byte(strings.Repeat("secret of a test ", 3)), 0o600); err != nil {
		return nil, err
	}
	if err := s.fill("envoy.yaml", filepath.Join(r.work, "envoy.yaml")); err != nil {
		return nil, err
	}
	return s, s.listener()
}

// fill writes one of the files with its values.
func (s *system) fill(name, path string) error {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return err
	}
	// Envoy notices only files that are moved into place.
	if err := os.WriteFile(path+".new", out.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// listener gives Envoy another listener.
func (s *system) listener() error {
	s.Version++
	return s.fill("listeners.yaml", s.Listeners)
}

func (s *system) url() string { return fmt.Sprintf("http://127.0.0.1:%d", s.In) }

// models of a run. Two fit on a GPU at a time.
const models = 6

// agent starts the agent of a GPU. engine returns the command of a model and further fields of its entry.
func (s *system) agent(i int, models int, engine func(model int) (argv []string, more string)) error {
	var out strings.Builder
	fmt.Fprintf(&out, "gpus: ['0']\nretry: 0\nhost_memory_gb: 1\nstate: state%d\nagent: {listen: ['%s'], secret: secret}\nmodels:\n", i, s.GPUs[i])
	for m := range models {
		argv, more := engine(m)
		command, err := json.Marshal(argv) // JSON is valid YAML
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "- {name: m%d, %s, command: %s}\n", m, more, command)
	}
	path := filepath.Join(s.run.work, fmt.Sprintf("agent%d.yaml", i))
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		return err
	}
	p, err := s.run.start("medusa: GPU 0 at", filepath.Join(s.run.build, "medusa"), "agent", path)
	s.agents[i] = p
	return err
}

// referenceAgents starts an agent for each GPU, with reference engines.
func (r *run) referenceAgents() (*system, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	s, err := r.newSystem()
	if err != nil {
		return nil, err
	}
	for i := range s.GPUs {
		if err := s.agent(i, models, s.reference); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// reference is the reference engine with one of the checkpoints: a third is stopped to make room, the others sleep.
func (s *system) reference(m int) (argv []string, more string) {
	r := s.run
	more = fmt.Sprintf("memory: 0.45, slots: 4, start: 0.5, service: 0.2, sleep: %d, asleep: 0.04", m%3)
	if m%len(checkpoints.Names) == 0 {
		more += fmt.Sprintf(", artifact: %q", r.artifact())
	}
	return append(r.engine("serve", checkpoints.Names[m%len(checkpoints.Names)]), "--served-model-name", "{name}", "--listen", "127.0.0.1:{port}"), more
}

// pick starts the picker with a policy. Each picker has its own log.
func (s *system) pick(policy string, fallbacks, maxWaiting, models int) (log string, err error) {
	var out strings.Builder
	fmt.Fprintf(&out, "listen: unix:picker.sock\nadmin: 127.0.0.1:%d\nsecret: secret\npolicy: %s\nmax_waiting: %d\nmax_endpoints: 8\nfallbacks: %d\ngone: 2\nmodels:\n", s.pickerAdmin, policy, maxWaiting, fallbacks)
	for m := range models {
		fmt.Fprintf(&out, "- {name: m%d, %s}\n", m, s.entry(m))
	}
	path := filepath.Join(s.run.work, "picker.yaml")
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		return "", err
	}
	if err := s.endpoints(s.GPUs...); err != nil {
		return "", err
	}
	s.logs++
	log = filepath.Join(s.run.work, fmt.Sprintf("decisions%d.jsonl", s.logs))
	s.picker, err = s.run.start("ready", filepath.Join(s.run.build, "medusa-picker"), "--endpoints", s.endpointsFile(), "--decisions", log, path)
	return log, err
}

func (s *system) endpointsFile() string { return filepath.Join(s.run.work, "endpoints.yaml") }

func (s *system) endpoints(list ...gpu) error {
	text := "endpoints:\n"
	for _, g := range list {
		text += fmt.Sprintf("- %s\n", g)
	}
	if len(list) == 0 {
		text = "endpoints: []\n"
	}
	return os.WriteFile(s.endpointsFile(), []byte(text), 0o600)
}

// proxy starts Envoy, and waits until it forwards requests.
func (s *system) proxy() (err error) {
	if s.envoy, err = s.run.startEnvoy(); err != nil {
		return err
	}
	return s.reach(http.MethodGet, "/v1/models", http.StatusOK)
}

// startEnvoy starts Envoy without waiting for it.
func (r *run) startEnvoy() (*process, error) {
	return r.start("", r.envoy(), "-c", filepath.Join(r.work, "envoy.yaml"), "--use-dynamic-base-id", "--concurrency", "2", "-l", "warn", "--drain-time-s", "2")
}

// reach waits until Envoy answers with a status.
func (s *system) reach(method, path string, status int) error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequest(method, s.url()+path, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == status {
				return nil
			}
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		if time.Now().After(end) {
			return fmt.Errorf("start Envoy: it passes nothing on: %w\n%s", err, s.envoy.output())
		}
	}
}

// stop ends all programs in order. No process may be left.
func (s *system) stop() error {
	for _, p := range append([]*process{s.envoy, s.picker}, s.agents...) {
		if p == nil {
			continue
		}
		if err := p.stop(); err != nil {
			return err
		}
	}
	return s.run.nothingLeft()
}

// replay demands that a log of decisions replays.
func (s *system) replay(log string) error {
	out, err := exec.Command(filepath.Join(s.run.build, "medusa"), "simulate", "--replay", log).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("identical")) {
		return fmt.Errorf("replay decisions: %w\n%s", err, out)
	}
	return nil
}

// empty demands that the picker soon has no more requests.
func (s *system) empty() error {
	want := []string{`medusa_picker_queue{state="waiting"} 0`, `medusa_picker_queue{state="running"} 0`}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/metrics", s.pickerAdmin))
		if err == nil && strings.Contains(text, want[0]+"\n") && strings.Contains(text, want[1]+"\n") {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the picker still has requests: %w\n%s", err, text)
		}
	}
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
