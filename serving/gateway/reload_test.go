package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/test/stubengine"
)

// reload puts YAML in force.
func (f *fixture) reload(t *testing.T, text string) error {
	t.Helper()
	s, err := parse("serve.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Reload(s)
}

// file has models that need half a GPU each.
func file(policy, gpus string, models ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "gpus: [%s]\npolicy: {name: %s}\nretry: 0\nhost_memory_gb: 1\nmodels:\n", gpus, policy)
	for _, m := range models {
		fmt.Fprintf(&out, "- {memory: 0.5, deadline: 5, slots: 2, start: 0.01, service: 0.01, %s}\n", m)
	}
	return out.String()
}

const m0 = "name: m0, command: [a, '{port}']"

// soon waits for a condition.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// crowd makes requests for m0 until the test ends. One of them runs and the others wait.
func (f *fixture) crowd(t *testing.T, requests int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for i := range requests {
		all.Go(func() { _, _ = stubengine.Ask(ctx, f.url, "m0", "x", false) })
		if i == 0 { // otherwise all might come at once, and be more than may wait
			soon(t, "one request runs", func() bool { _, r := f.queue.Queued(); return r == 1 })
		}
	}
	soon(t, "one request runs, the others wait", func() bool { w, r := f.queue.Queued(); return w == requests-1 && r == 1 })
}

// While clients ask, models are added, removed and changed, GPUs are added and removed, and the policy changes. No request for a
// model that stays fails. A request for a model that comes and goes is answered, or gets the error that the model does not exist.
func TestReloadLosesNoRequest(t *testing.T) {
	f := start(t, file("mqfq", "'0', '1'", m0), nil)
	over := make(chan struct{})
	var clients sync.WaitGroup
	var answered, unknown atomic.Int32
	for c := range 8 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				model, prompt := fmt.Sprint("m", (c+i)%4), fmt.Sprint(c, " asks ", i)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				text, err := stubengine.Ask(ctx, f.url, model, prompt, i%2 == 0)
				cancel()
				var status *stubengine.StatusError
				switch {
				case err == nil && text == stubengine.Answer(model, prompt):
					answered.Add(1)
				case model != "m0" && errors.As(err, &status) && status.Status == 404:
					unknown.Add(1)
				default:
					t.Errorf("%s: %q, %v", model, text, err)
					return
				}
			}
		})
	}
	for i := range 60 {
		models := []string{m0}
		if i%3 == 0 { // the model that stays gets another engine
			models[0] = fmt.Sprintf("name: m0, command: [a, '{port}', '%d']", i)
		}
		for k := 1; k < 4; k++ {
			if (i/k)%2 == 1 {
				models = append(models, fmt.Sprintf("name: m%d, command: [a, '{port}'], sleep: %d, asleep: 0.05", k, k%3))
			}
		}
		policy := []string{"mqfq", "torpor", "lalbo3", "rro3"}[i%4]
		if err := f.reload(t, file(policy, []string{"'0', '1'", "'1'", "'1', '2'", "'0'"}[i/2%4], models...)); err != nil {
			t.Error(err)
		}
		before := answered.Load()
		soon(t, "answers", func() bool { return t.Failed() || answered.Load() > before+5 })
	}
	close(over)
	clients.Wait()
	if unknown.Load() == 0 {
		t.Error("no request was for a model that was not there: this shows little")
	}
	t.Logf("%d answers, %d unknown models, %d places", answered.Load(), unknown.Load(), len(f.setup.Load().models))
}

// Engines of models that stay go on. Engines of models and GPUs that leave end when they have no request.
func TestReloadDrains(t *testing.T) {
	var starts sync.Map
	f := start(t, file("lalb", "'0', '1'", m0, "name: m1, command: [a, '{port}']", "name: m2, command: [a, '{port}']"), func(fn int, s *stubengine.Stub) {
		n, _ := starts.LoadOrStore(fn, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		if fn == 1 {
			s.Service = 300 * time.Millisecond
		}
	})
	for fn := range 3 {
		if _, err := stubengine.Ask(t.Context(), f.url, fmt.Sprint("m", fn), "x", false); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "no request runs", func() bool { _, running := f.queue.Queued(); return running == 0 })
	answered := make(chan error, 1)
	go func() {
		_, err := stubengine.Ask(t.Context(), f.url, "m1", "x", true)
		answered <- err
	}()
	soon(t, "a request runs", func() bool { _, running := f.queue.Queued(); return running == 1 })
	if err := f.reload(t, file("lalb", "'0', '1'", m0)); err != nil {
		t.Fatal(err)
	}
	var status *stubengine.StatusError
	if _, err := stubengine.Ask(t.Context(), f.url, "m1", "x", false); !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("a model that has left: %v", err)
	}
	if err := <-answered; err != nil {
		t.Errorf("a request on its way to a model that leaves: %v", err)
	}
	soon(t, "engines of models that have left end", func() bool { return f.live.Load() == 1 })
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Error(err)
	}
	if n, _ := starts.Load(0); n.(*atomic.Int32).Load() != 1 {
		t.Error("the engine of the model that stays was started again")
	}
	where := 0
	if s := f.agent.Standing(0, 0).State; s != agent.Awake {
		where = 1
	}
	if err := f.reload(t, file("lalb", fmt.Sprintf("'%d'", 1-where), m0)); err != nil {
		t.Fatal(err)
	}
	soon(t, "the engine on a GPU that has left ends", func() bool { return f.live.Load() == 0 })
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Error(err)
	}
	if s := f.agent.Standing(1-where, 0).State; s != agent.Awake {
		t.Errorf("on the GPU that is left, the engine is %s", s)
	}
}

// The place of a model that has left stays its own while one of its requests runs or waits.
func TestPlacesInUse(t *testing.T) {
	f := start(t, "gpus: ['0']\nmodels:\n- {"+m0+", slots: 1}\n", func(fn int, s *stubengine.Stub) {
		if fn == 0 {
			s.Service = time.Hour
		}
	})
	f.crowd(t, 2)
	f.mu.Lock()
	free := f.free(0)
	f.mu.Unlock()
	if free {
		t.Fatal("the place of a model with requests is free")
	}
	if err := f.reload(t, file("mqfq", "'0'", "name: m1, command: [a, '{port}']")); err != nil {
		t.Fatal(err)
	}
	if place := f.setup.Load().functions["m1"]; place != 1 {
		t.Errorf("m1 has place %d", place)
	}
}

// Places of models that have left are used again, so that a server does not grow with each reload.
func TestReloadDoesNotGrow(t *testing.T) {
	f := start(t, file("mqfq", "'0'", m0), nil)
	for i := range 20 {
		if err := f.reload(t, file("mqfq", "'0'", fmt.Sprintf("name: m0, command: [a, '{port}', '%d']", i))); err != nil {
			t.Fatal(err)
		}
		if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
			t.Fatal(err)
		}
		soon(t, "one engine", func() bool { return f.live.Load() == 1 })
	}
	if n := len(f.setup.Load().models); n > 3 {
		t.Errorf("one model has %d places", n)
	}
}

// A running server keeps its address. After a refused reload, the old configuration stays in force.
func TestReloadRefuses(t *testing.T) {
	f := start(t, file("mqfq", "'0'", m0), nil)
	for _, text := range []string{"listen: 127.0.0.1:1\n", "state: elsewhere\n"} {
		if err := f.reload(t, text+file("fcfs", "'0'", "name: m1, command: [a, '{port}']")); err == nil || !strings.Contains(err.Error(), "reload configuration: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Error(err)
	}
}
