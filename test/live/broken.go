package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"medusa/test/stubengine"
)

// broken runs the faults that need no model.
func (r *run) broken() (string, error) {
	if err := r.brokenEngines(); err != nil {
		return "", fmt.Errorf("engines are broken: %w", err)
	}
	disks, err := r.fullDisk()
	if err != nil {
		return "", fmt.Errorf("the disk is full: %w", err)
	}
	return fmt.Sprintf("broken-engines=%d full-disks=%d", len(broken)+len(moods), disks), nil
}

// broken are models whose engines never get ready, each with a command in place of a stub engine's.
var broken = []struct{ name, command string }{
	{"never", "%q, --listen, '127.0.0.1:{port}', --load, 1h"},
	{"mute", "%q, --listen, '127.0.0.1:{port}', --broken, mute"},
	{"garbled", "%q, --listen, '127.0.0.1:{port}', --broken, garbage"},
	{"deaf", "%q, --listen, '127.0.0.1:0', --model, 'not at {port}'"},
	{"ends", "/bin/sh, -c, ': %s {port}; exit 3'"},
}

// moods are prompts that break an engine which was well.
var moods = []string{stubengine.Die, stubengine.Garbage, stubengine.Hang, stubengine.Break}

// stub is the program of stub engines.
func (r *run) stub() string { return filepath.Join(r.build, "stub-engine") }

// brokenEngines has models whose engines never come up or answer garbage beside one that is well. Each request for the former fails
// clearly, each for the latter is answered.
func (r *run) brokenEngines() error {
	var out strings.Builder
	out.WriteString("listen: 127.0.0.1:0\ngpus: ['0', '1']\nretry: 0\nhealth: 0.5\npolicy: {name: mqfq, d: 8}\nmodels:\n")
	for _, name := range []string{"well", "moody"} {
		fmt.Fprintf(&out, "- {name: %s, memory: 0.2, slots: 4, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}', --service, 20ms]}\n", name, r.stub())
	}
	for _, m := range broken {
		fmt.Fprintf(&out, "- {name: %s, memory: 0.2, slots: 4, start_limit: 1, command: ["+m.command+"]}\n", m.name, r.stub())
	}
	s, log, err := r.serveText(out.String())
	if err != nil {
		return err
	}
	var wrong atomic.Pointer[error]
	over, asked := make(chan struct{}), make(chan struct{})
	var count atomic.Int64
	go func() {
		defer close(asked)
		until(over, 2, &count, func(i int) {
			if err := echoed(s.url, "well", fmt.Sprint("question ", i), i%2 == 0); err != nil {
				err = fmt.Errorf("a model that is well: %w", err)
				wrong.CompareAndSwap(nil, &err)
			}
		})
	}()
	each(4*(len(broken)+len(moods)), 6, func(i int) {
		model, prompt, stream := "moody", "x", i%2 == 0
		if n := i % (len(broken) + len(moods)); n < len(broken) {
			model = broken[n].name
		} else if prompt = moods[n-len(broken)]; prompt == stubengine.Break {
			stream = true // it breaks streams only
		}
		if err := echoed(s.url, model, prompt, stream); err == nil || !engineFailed(err) {
			err = fmt.Errorf("%s, asked %q: %w", model, prompt, err)
			wrong.CompareAndSwap(nil, &err)
		}
	})
	close(over)
	<-asked
	if err := wrong.Load(); err != nil {
		return fmt.Errorf("%w\n%s", *err, s.output())
	}
	if err := echoed(s.url, "moody", "again", false); err != nil {
		return fmt.Errorf("an engine that was broken: %w", err)
	}
	if err := s.empty(); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return r.replay(log)
}

// echoed asks a stub engine, and fails if the answer is another than its own.
func echoed(url, model, prompt string, stream bool) error {
	ctx, cancel := within()
	defer cancel()
	text, err := stubengine.Ask(ctx, url, model, prompt, stream)
	if err == nil && text != stubengine.Answer(model, prompt) {
		return &wrongAnswer{prompt, text}
	}
	return err
}

// serveText starts `medusa serve` with a file.
func (r *run) serveText(config string) (s *server, log string, err error) {
	if err := os.WriteFile(r.config(), []byte(config), 0o600); err != nil {
		return nil, "", err
	}
	log = filepath.Join(r.work, "decisions.jsonl")
	s, err = r.start(filepath.Join(r.build, "medusa"), "serve", r.config(), "--decisions", log)
	return s, log, err
}

// metrics returns those of the server, line by line.
func (s *server) metrics() ([]string, error) {
	response, err := http.Get(s.url + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return strings.Split(string(text), "\n"), err
}

// empty demands that the server knows no request any more.
func (s *server) empty() error {
	lines, err := s.metrics()
	if err != nil {
		return err
	}
	for _, line := range lines {
		if (strings.HasPrefix(line, "medusa_serve_running{") || strings.HasPrefix(line, "medusa_serve_waiting{")) && !strings.HasSuffix(line, " 0") {
			return fmt.Errorf("at the end: %s", line)
		}
	}
	return nil
}
