package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/test/stubengine"
)

// send asks m0 with headers, given as pairs.
func (f *fixture) send(ctx context.Context, prompt string, headers ...string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/completions", strings.NewReader(fmt.Sprintf(`{"model": "m0", "prompt": %q}`, prompt)))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Headers with invalid values are refused, and the error names the header.
func TestHeaders(t *testing.T) {
	f := start(t, config("torpor", 1, ""), nil)
	for _, row := range []struct {
		headers []string
		status  int
	}{
		{nil, 200}, {[]string{headerDeadline, "2.5", headerFlow, "team a"}, 200},
		{[]string{headerDeadline, "0"}, 400}, {[]string{headerDeadline, "-1"}, 400}, {[]string{headerDeadline, "soon"}, 400},
		{[]string{headerDeadline, "NaN"}, 400}, {[]string{headerDeadline, "Inf"}, 400}, {[]string{headerDeadline, "1e300"}, 400},
		{[]string{headerDeadline, "1", headerDeadline, "2"}, 400}, {[]string{headerFlow, "a", headerFlow, "b"}, 400},
		{[]string{headerFlow, strings.Repeat("a", 129)}, 400},
	} {
		status, body, err := f.send(t.Context(), "x", row.headers...)
		if err != nil || status != row.status || status == 400 && (!strings.Contains(body, "invalid_header") || !strings.Contains(body, row.headers[0])) {
			t.Errorf("%q: %d %s, %v; want status %d", row.headers, status, body, err, row.status)
		}
	}
}

// If a flow has sent many requests, it takes turns with others. The earliest deadline comes first within a flow, and between equal flows.
func TestFlowsAndDeadlines(t *testing.T) {
	first := make(chan struct{})
	var once sync.Once
	f := start(t, "gpus: ['0']\npolicy: {name: lalb}\nmodels:\n- {name: m0, command: [e, '{port}'], slots: 1}\n", func(_ int, s *stubengine.Stub) {
		s.Observe = func(what string) {
			if what == "start" {
				once.Do(func() { <-first }) // until all others wait
			}
		}
	})
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	waiting := -1 // the first request runs
	ask := func(name string, headers ...string) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			status, body, err := f.send(ctx, name, headers...)
			if err != nil || status != 200 {
				t.Errorf("%s: %d %s, %v", name, status, body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		})
		waiting++
		soon(t, "it waits", func() bool { w, r := f.queue.Queued(); return w == waiting && r == 1 })
	}
	ask("running")
	for i := range 3 {
		ask(fmt.Sprint("many ", i), headerFlow, "many")
	}
	ask("few late", headerFlow, "few", headerDeadline, "60")
	ask("few early", headerFlow, "few", headerDeadline, "1")
	close(first)
	all.Wait()
	if want := []string{"running", "few early", "many 0", "few late", "many 1", "many 2"}; !slices.Equal(order, want) {
		t.Errorf("answered %q, want %q", order, want)
	}
}

// If a client of a flow leaves while others wait, the others keep their places.
func TestFlowsLeave(t *testing.T) {
	f := start(t, "gpus: ['0']\npolicy: {name: mqfq}\nmodels:\n- {name: m0, command: [e, '{port}'], slots: 2}\n", nil)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if i%3 == 0 {
				time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
			}
			status, body, err := f.send(ctx, "x", headerFlow, fmt.Sprint(i%5), headerDeadline, fmt.Sprint(1+i%4))
			if i%3 == 0 && errors.Is(err, context.Canceled) {
				return
			}
			if err != nil || status != 200 {
				t.Errorf("request %d: %d %s, %v", i, status, body, err)
			}
		})
	}
	all.Wait()
}

// If a start takes too long, the error is the engine's failure, not the timeout of the client.
func TestStartThatIsTooLong(t *testing.T) {
	one := strings.Replace(config("mqfq", 1, ""), "start: 0.01", "start: 0.01, start_limit: 0.01", 1)
	f := start(t, one, func(_ int, s *stubengine.Stub) { s.Load = time.Hour })
	if status, body, err := f.send(t.Context(), "x"); err != nil || status != http.StatusBadGateway || !strings.Contains(body, "engine_failed") {
		t.Error(status, body, err)
	}
}

// An engine that wants a key gets its own in place of the client's.
func TestKeyOfAnEngine(t *testing.T) {
	f := start(t, config("mqfq", 1, ""), func(_ int, s *stubengine.Stub) { s.Secret = "of the engine" })
	if status, body, err := f.send(t.Context(), "x", "Authorization", "Bearer of the client"); err != nil || status != http.StatusOK {
		t.Error(status, body, err)
	}
}

// While one model has the only place, the engine of another model with a waiting request wakes already.
func TestPrefetch(t *testing.T) {
	model := "- {name: m%d, command: [engine, '{port}'], memory: 0.5, slots: 2%s}\n"
	text := "gpus: ['0']\npolicy: {name: mqfq, d: 1}\nhost_memory_gb: 1\nmodels:\n" + fmt.Sprintf(model, 0, "") + fmt.Sprintf(model, 1, ", sleep: 1") + fmt.Sprintf(model, 2, "")
	f := start(t, text, func(fn int, s *stubengine.Stub) {
		if fn == 0 {
			s.Service = time.Hour
		}
	})
	for _, model := range []string{"m1", "m2"} {
		if _, err := stubengine.Ask(t.Context(), f.url, model, "x", false); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	ask := func(model string) {
		all.Go(func() { _, _ = stubengine.Ask(ctx, f.url, model, "x", false) })
	}
	ask("m0") // m1 goes to sleep for it
	for at := f.agent.Standing(0, 0); at.State != agent.Awake || at.Requests != 1; at = f.agent.Standing(0, 0) {
		time.Sleep(time.Millisecond)
	}
	ask("m1")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if at := f.agent.Standing(0, 1); at.State == agent.Awake && at.Requests == 0 {
			break
		}
		if time.Now().After(end) {
			t.Error("the engine of m1 sleeps on")
			break
		}
	}
	cancel()
	all.Wait()
}
