package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"medusa/test/calllog"
)

// patience is enough for one step on a loaded machine.
const patience = 5 * time.Minute

// environ is the environment of the programs: the simulated GPU, and none of this process's settings of Medusa, the simulator and the
// loader.
func (r *run) environ(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MEDUSA_") && !strings.HasPrefix(v, "SIMGPU_") && !strings.HasPrefix(v, "LD_") {
			env = append(env, v)
		}
	}
	return append(append(env, "LD_LIBRARY_PATH="+r.build+"/simulated", "VBLAS_LIB="+r.build+"/lib/libvendorblas.so", "SIMGPU_MEMORY=1G",
		"MEDUSA_CACHE="+r.work+"/cache"), more...)
}

// engine is the command line of a reference engine.
func (r *run) engine(command string, more ...string) []string {
	return append([]string{r.build + "/reference", command, "--model", "runners/reference/models/tiny", "--batch-sizes", "1,2,4,8,16,32,64",
		"--page-size", "4096", "--max-model-len", "64", "--kv-cache-bytes", fmt.Sprint(largest)}, more...)
}

// medusa puts the command in front of an engine's.
func (r *run) medusa(engine []string, args ...string) []string {
	return append(append(append([]string{r.build + "/medusa"}, args...), "--"), engine...)
}

// output runs a program and returns its standard output.
func (r *run) output(env []string, argv []string) ([]byte, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = r.environ(env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// mapped returns the bytes that an ended process had mapped when it was done with serving. It destroyed its graphs before it gave the cache
// back.
func mapped(path string) (uint64, error) {
	log, err := calllog.Read(path)
	if err != nil {
		return 0, err
	}
	var n uint64
	for i, e := range log.Entries {
		var bytes uint64
		if e.Name == "cuGraphExecDestroy" && calllog.Count(log.Entries[i:], "cuGraphLaunch") == 0 {
			return n, nil
		}
		if e.Result != "CUDA_SUCCESS" || e.Name != "cuMemMap" && e.Name != "cuMemUnmap" {
			continue
		}
		if _, err := fmt.Sscan(e.Args["bytes"], &bytes); err != nil {
			return 0, err
		}
		if e.Name == "cuMemUnmap" {
			bytes = -bytes
		}
		n += bytes
	}
	return 0, errors.New("the log ends without the end of a graph")
}

// server is an engine that serves.
type server struct {
	cmd   *exec.Cmd
	url   string
	ended chan error

	mu   sync.Mutex
	said strings.Builder
}

func (s *server) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.WriteString(line + "\n")
}

func (s *server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// serve starts an engine until it says where it listens.
func (r *run) serve(env []string, argv []string) (*server, error) {
	s := &server{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1)}
	s.cmd.Env = r.environ(env...)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		s.note(lines.Text())
		if i := strings.LastIndex(lines.Text(), "http://"); i >= 0 {
			s.url = lines.Text()[i:]
		}
	}
	go func() {
		for lines.Scan() {
			s.note(lines.Text())
		}
		s.ended <- s.cmd.Wait()
	}()
	if s.url == "" {
		return nil, fmt.Errorf("the engine does not serve: %w\n%s", <-s.ended, s.output())
	}
	return s, nil
}

// stop ends the engine, which has to give everything back.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("end engine: %w\n%s", err, s.output())
		}
		return nil
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		return errors.New("end engine: it does not end")
	}
}

// size is the answer of /kv_cache.
type size struct {
	Range  uint64 `json:"range_bytes"`
	Least  uint64 `json:"least_bytes"`
	Mapped uint64 `json:"mapped_bytes"`
	Blocks int    `json:"blocks"`
}

// refusal is an answer with another status than 200.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// call sends a request and decodes the answer.
func (s *server) call(method, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	client := http.Client{Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &refusal{response.StatusCode, string(text)}
	}
	return json.Unmarshal(text, answer)
}

// resize asks for another size, and demands the bytes that were asked for within a page of each range.
func (s *server) resize(bytes uint64) (got size, err error) {
	if err := s.call("POST", fmt.Sprintf("/kv_cache?bytes=%d", bytes), nil, &got); err != nil {
		return got, err
	}
	return got, fits(bytes, got.Mapped, got.Blocks)
}

// fits compares a size with the requested one.
func fits(asked, mapped uint64, blocks int) error {
	if mapped > asked || asked-mapped >= ranges*page || blocks != int(mapped/ranges/block) {
		return fmt.Errorf("asked for %d bytes, got %d and %d blocks", asked, mapped, blocks)
	}
	return nil
}

// ask returns the tokens that continue a prompt.
func (s *server) ask(prompt string, tokens int) ([]int, error) {
	var answer struct {
		Choices []struct {
			TokenIDs []int `json:"token_ids"`
		} `json:"choices"`
	}
	err := s.call("POST", "/v1/completions", map[string]any{"model": "tiny", "prompt": prompt, "max_tokens": tokens, "ignore_eos": true,
		"return_token_ids": true}, &answer)
	if err == nil && len(answer.Choices) != 1 {
		err = fmt.Errorf("%d answers", len(answer.Choices))
	}
	if err != nil {
		return nil, err
	}
	return answer.Choices[0].TokenIDs, nil
}
