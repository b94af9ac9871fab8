package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"medusa/interpose"
)

// Process is an engine that is a command with an HTTP port. All of its processes end with this one, however it ends.
type Process struct {
	argv   []string
	env    []string
	output io.Writer

	url    string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	last   *tail
}

// NewProcess makes an engine that argv starts with the environment env. In both, {port} stands for the port on which it is to listen
// at 127.0.0.1. output receives all that it prints.
func NewProcess(argv, env []string, output io.Writer) *Process {
	return &Process{argv: argv, env: env, output: output, ended: make(chan struct{}), last: &tail{}}
}

// look is the time between two looks at an engine that starts.
const look = 20 * time.Millisecond

// Start implements [Engine].
func (p *Process) Start(ctx context.Context) error {
	port, err := takePort()
	if err != nil {
		close(p.ended)
		return err
	}
	p.url = "http://127.0.0.1:" + port
	fill := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = strings.ReplaceAll(s, "{port}", port)
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
			if owned(port) {
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
				return fmt.Errorf("another program answers at port %s: %w", port, ctx.Err())
			}
			return ctx.Err()
		}
	}
}

// taken are the ports of engines that have not ended. An engine listens some time after it got its port: meanwhile another one must
// not get it, or one would answer for the other.
var taken struct {
	mu    sync.Mutex
	ports map[string]bool
}

// takePort returns a port that was free a moment ago, and that no other engine has. If another program takes it first, the engine
// does not get ready.
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

// ended describes the end of a process by its exit code and its last lines.
func ended(err error, last *tail) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	if text := last.String(); text != "" {
		return fmt.Errorf("%w, after: %s", err, text)
	}
	return err
}

// URL implements [Engine].
func (p *Process) URL() string { return p.url }

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
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, nil)
	if err != nil {
		return err
	}
	r.Close = true // rare: no connection is worth keeping
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %s", method, path, response.Status)
	}
	return nil
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

// tail keeps the last lines that a process printed.
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
