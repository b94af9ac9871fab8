package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// faults kills an agent and brings it back, kills the picker and replaces it, reloads Envoy and the list of endpoints, and makes clients
// leave, all while clients ask. Each request gets its answer or a clear error. Afterwards all requests are answered again.
func (r *run) faults() (string, error) {
	s, err := r.referenceAgents()
	if err != nil {
		return "", err
	}
	if _, err := s.pick("{name: mqfq}", 1, 1000, models); err != nil {
		return "", err
	}
	if err := s.proxy(); err != nil {
		return "", err
	}
	over := make(chan struct{})
	troubled := make(chan error, 1)
	begun := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(over)
		<-begun // the program that asks takes some time to start
		troubled <- s.trouble()
	}()
	answered, failed, left := 0, 0, 0
	for round := 0; ; round++ {
		list := r.load(r.known, max(1, r.requests/4), uint64(100+round))
		rng := rand.New(rand.NewPCG(r.seed, uint64(round)))
		for i := range list {
			if i%9 == 0 {
				list[i].Leave, list[i].IgnoreEOS, list[i].MaxTokens = 0.001+0.3*rng.Float64(), true, 200
			}
		}
		err := r.all(s.url(), atATime, list, func(q *question, a *reply) error {
			once.Do(func() { close(begun) })
			switch err := judge(q, a); {
			case q.Leave > 0 && (a.Left || a.Finish != ""):
				left++
			case err == nil:
				answered++
			case clear(a):
				failed++
			default:
				return err
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("%w\n%s", err, s.picker.output())
		}
		select {
		case <-over:
			if err := <-troubled; err != nil {
				return "", err
			}
			return s.afterwards(answered, failed, left)
		default:
		}
	}
}

// clear reports whether a client was told that its request failed: by a status of 5xx, or by the end of its connection within an answer.
func clear(a *reply) bool { return a.Status >= 500 || a.Broken != "" }

// trouble makes the faults, one after the other.
func (s *system) trouble() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"kill an agent", func() error { s.agents[1].kill(); return nil }},
		{"start it again", func() error { return s.agent(1, models, s.reference) }},
		{"kill the picker", func() error { s.picker.kill(); return nil }},
		{"replace it", func() error { _, err := s.pick("{name: mqfq}", 1, 1000, models); return err }},
		{"reload Envoy", s.listener},
		{"take an endpoint away", func() error { return s.endpoints(s.GPUs[0], s.GPUs[2]) }},
		{"a list with a mistake", func() error { return s.endpoints(gpu{"nowhere", 1}) }},
		{"give it back", func() error { return s.endpoints(s.GPUs...) }},
		{"kill an engine's agent in order", func() error { return s.agents[2].stop() }},
		{"start that again", func() error { return s.agent(2, models, s.reference) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	return nil
}

// afterwards demands that each model answers, that agents refuse requests that do not come from the picker, and that no request is left.
func (s *system) afterwards(answered, failed, left int) (string, error) {
	r := s.run
	if err := s.picker.wait("the endpoints stay as they are"); err != nil {
		return "", err
	}
	if err := r.all(s.url(), atATime, r.load(r.known, 8*models, 3), judge); err != nil {
		return "", fmt.Errorf("afterwards: %w\n%s", err, s.picker.output())
	}
	if answered == 0 {
		return "", errors.New("no request was answered meanwhile")
	}
	if err := s.empty(); err != nil {
		return "", err
	}
	for _, g := range s.GPUs {
		response, err := http.Post(fmt.Sprintf("http://%s/v1/completions", g), "application/json", strings.NewReader(`{"model": "m0", "prompt": "And"}`))
		if err != nil {
			return "", err
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			return "", fmt.Errorf("an agent answers a request without a ticket: status %d: %s", response.StatusCode, body.String())
		}
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	return fmt.Sprintf("faults=10 answered=%d failed-clearly=%d left=%d lost-silently=0 by-envoy=%s", answered, failed, left, s.reasons()), nil
}

// reasons counts the failed requests by the reason in Envoy's log.
func (s *system) reasons() string {
	count := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^failed: (\S+ \S+ .*) at `).FindAllStringSubmatch(s.envoy.output(), -1) {
		count[strings.ReplaceAll(m[1], " ", "/")]++
	}
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%s:%d", reason, count[reason]))
	}
	return strings.Join(list, ",")
}
