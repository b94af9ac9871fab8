package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/interpose"
)

// Process is an engine that is a command with an HTTP port. All of its processes end when this one ends, also if it is killed.
type Process struct {
	name   string // of the model
	key    string // "": the engine wants none
	argv   []string
	env    []string
	meter  *Meter // nil: the engine's GPU memory is unknown
	output io.Writer

	url    string
	guard  int // the child of this process that has the command; 0: not known. It is looked up when the engine is put to sleep or measured
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	last   *tail
}

// NewProcess makes an engine of a model that argv starts with the environment env. In both, {port} stands for the port of 127.0.0.1 at which the
// engine has to listen, and {key} for the API key that requests to it will have. meter measures its GPU, if it is not nil. output receives all that
// it prints.
func NewProcess(name string, argv, env []string, meter *Meter, output io.Writer) *Process {
	p := &Process{name: name, argv: argv, env: env, meter: meter, output: output, ended: make(chan struct{}), last: &tail{}}
	if slices.ContainsFunc(slices.Concat(argv, env), func(s string) bool { return strings.Contains(s, "{key}") }) {
		p.key = rand.Text()
	}
	return p
}

// look is the time between two health checks of an engine that starts.
const look = 20 * time.Millisecond

// Start implements [Engine].
func (p *Process) Start(ctx context.Context) error {
	port, err := takePort()
	if err != nil {
		close(p.ended)
		return err
	}
	p.url = "http://127.0.0.1:" + port
	values := strings.NewReplacer("{port}", port, "{key}", p.key)
	fill := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = values.Replace(s)
		}
		return out
	}
	argv := fill(p.argv)
	var life context.Context
	life, p.cancel = context.WithCancel(context.Background())
	cmd := exec.CommandContext(life, argv[0], argv[1:]...)
	cmd.Env = fill(p.env)
	cmd.Stdout = io.MultiWriter(p.output, p.last)
	cmd.Stderr = cmd.Stdout
	go func() {
		p.err = ended(interpose.Run(cmd, interpose.End), p.last)
		givePort(port)
		close(p.ended)
	}()
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a program that accepts connections and does not answer must not hide the engine's end
		select {
		case <-p.ended:
			cancel()
		case <-looking.Done():
		}
	}()
	foreign := false
	for {
		if p.Healthy(looking) == nil {
			if p.known(looking, listeners(port)) {
				return nil
			}
			foreign = true
		}
		select {
		case <-time.After(look):
		case <-p.ended:
			return p.err
		case <-ctx.Done():
			p.Stop()
			if foreign {
				return fmt.Errorf("another program answers at port %s: %w (an engine that is no child of its command needs {key} there)", port, ctx.Err())
			}
			return ctx.Err()
		}
	}
}

// taken are the ports of engines that have not ended. An engine listens some time after it got its port. Meanwhile no other engine may get the port,
// or one would answer for the other.
var taken struct {
	mu    sync.Mutex
	ports map[string]bool
}

// takePort returns a port that was free a moment ago, and that no other engine has. If another program takes it first, the engine does not become
// ready.
func takePort() (string, error) {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	if taken.ports == nil {
		taken.ports = map[string]bool{}
	}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err = errors.Join(err, l.Close()); err != nil {
			return "", err
		}
		// mutant: a port for each engine
		if taken.ports[port] {
			continue
		}
		taken.ports[port] = true
		return port, nil
	}
}

func givePort(port string) {
	taken.mu.Lock()
	defer taken.mu.Unlock()
	delete(taken.ports, port)
}

// ended describes the end of a process by its exit code and its last line.
func ended(err error, last *tail) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	if text := last.String(); text != "" {
		return fmt.Errorf("%w, after: %s", err, text)
	}
	return err
}

// known reports whether the answers come from this engine: a process of the command listens, or the listener has the key. The processes of a
// container are no children of the command that starts it.
func (p *Process) known(ctx context.Context, at []socket) bool {
	return owned(at) || p.key != "" && trusted(at, os.Getuid()) && p.knowsKey(ctx)
}

// knowsKey reports whether the engine refuses another key, and answers its own key with the model's name.
func (p *Process) knowsKey(ctx context.Context) bool {
	const path = "/v1/models"
	other, err := p.send(ctx, http.MethodGet, path, rand.Text())
	if err != nil {
		return false
	}
	_ = other.Body.Close()
	// mutant: engines that take any key
	if other.StatusCode != http.StatusUnauthorized && other.StatusCode != http.StatusForbidden {
		return false
	}
	own, err := p.send(ctx, http.MethodGet, path, p.key)
	if err != nil {
		return false
	}
	defer own.Body.Close()
	var models struct{ Data []struct{ ID string } }
	err = json.NewDecoder(io.LimitReader(own.Body, 1<<20)).Decode(&models)
	for _, m := range models.Data {
		if err == nil && own.StatusCode == http.StatusOK && m.ID == p.name {
			return true
		}
	}
	return false
}

// URL implements [Engine].
func (p *Process) URL() string { return p.url }

// Key implements [Engine].
func (p *Process) Key() string { return p.key }

// Healthy implements [Engine].
func (p *Process) Healthy(ctx context.Context) error { return p.call(ctx, http.MethodGet, "/health") }

// Sleep implements [Engine], as vLLM has it.
func (p *Process) Sleep(ctx context.Context, level int) error {
	return p.call(ctx, http.MethodPost, fmt.Sprintf("/sleep?level=%d", level))
}

// Wake implements [Engine], as vLLM has it.
func (p *Process) Wake(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "/wake_up")
}

func (p *Process) call(ctx context.Context, method, path string) error {
	response, err := p.send(ctx, method, path, p.key)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %s", method, path, response.Status)
	}
	return nil
}

func (p *Process) send(ctx context.Context, method, path, key string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true // rare: no connection is worth keeping
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return http.DefaultTransport.RoundTrip(r) // which follows no redirects: an answer, and the key, are the engine's
}

// Stop implements [Engine].
func (p *Process) Stop() {
	if p.cancel != nil {
		p.cancel()
	}
	<-p.ended
}

// Ended implements [Engine].
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err implements [Engine].
func (p *Process) Err() error { return p.err }

// tail keeps the end of the text that a process printed.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailBytes bounds the text that is kept.
const tailBytes = 400

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns the last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return string(text)
}
