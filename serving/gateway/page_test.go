package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/test/stubengine"
)

// stream reads the updates of a page.
type stream struct {
	*bufio.Scanner
	id, data string
}

// watch opens a page's stream that ends with the test. If last is not empty, the page has seen the change
// of that number.
func (f *fixture) watch(ctx context.Context, t *testing.T, url, last string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %s, %s", response.Status, response.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<22)
	return &stream{Scanner: lines}
}

// next returns the next update; false: the stream has ended.
func (s *stream) next(t *testing.T) (u update, ok bool) {
	t.Helper()
	for s.Scan() {
		if id, is := strings.CutPrefix(s.Text(), "id: "); is {
			s.id = id
		}
		if data, is := strings.CutPrefix(s.Text(), "data: "); is {
			if err := json.Unmarshal([]byte(data), &u); err != nil {
				t.Fatal(err)
			}
			s.data = data
			return u, true
		}
	}
	return u, false
}

// states lists the states that changes of a model entered.
func states(changes []Change, model string) (list []agent.State) {
	for _, c := range changes {
		if c.Model == model {
			list = append(list, c.State)
		}
	}
	return list
}

// A page gets the changes before it opened, those while it is open, and those that it missed.
func TestEvents(t *testing.T) {
	f := start(t, "gpus: ['7']\nretry: 500\npolicy: {name: fcfs}\nmodels:\n- {name: m0, command: [e, '{port}'], memory: 0.6, slots: 1, deadline: 1000}\n"+
		"- {name: m1, command: [e, '{port}'], memory: 0.6, deadline: 1e-6}\n- {name: m2, command: [e, '{port}'], memory: 0.6}\n",
		func(fn int, s *stubengine.Stub) {
			if fn == 2 {
				s.Refuses = errors.New("no weights")
			}
		})
	for _, name := range []string{"m0", "m1"} {
		if _, err := stubengine.Ask(t.Context(), f.url, name, "x", false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stubengine.Ask(t.Context(), f.url, "m2", "x", false); err == nil {
		t.Fatal("an engine that does not start answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := f.watch(ctx, t, f.url, "")
	u, _ := s.next(t)
	if got, want := states(u.Changes, "m0"), []agent.State{agent.Starting, agent.Awake, agent.Evicted, agent.Cold}; !slices.Equal(got, want) {
		t.Errorf("m0 went through %v, want %v", got, want)
	}
	m0, m1 := u.Models[0], u.Models[1]
	if m0.Starts != 1 || m0.Answered != 1 || m0.InTime != 1 || m0.Late != 0 || m1.InTime != 0 || m1.Late != 1 {
		t.Errorf("m0 %+v, m1 %+v", m0, m1)
	}
	if m2 := u.Models[2]; m2.Failed != 1 || m2.Failures != 1 {
		t.Errorf("m2 %+v", m2)
	}
	if g := u.GPUs[0]; g.ID != "7" || len(g.Engines) != 1 || g.Engines[0].Model != "m2" || g.Engines[0].State != agent.Failed || !failureID.MatchString(g.Engines[0].Error) || strings.Contains(g.Engines[0].Error, "weights") {
		t.Errorf("GPUs %+v", u.GPUs)
	}
	seen := s.id
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Fatal(err)
	}
	for awake := false; !awake; {
		if u, _ = s.next(t); len(u.Changes) > 0 {
			awake = slices.Contains(states(u.Changes, "m0"), agent.Awake)
		}
	}
	if slices.Contains(states(u.Changes, "m1"), agent.Starting) {
		t.Error("a change came twice")
	}
	missed, _ := f.watch(ctx, t, f.url, seen).next(t)
	if got, want := states(missed.Changes, "m0"), []agent.State{agent.Starting, agent.Awake}; !slices.Equal(got, want) {
		t.Errorf("missed changes of m0 %v, want %v", got, want)
	}
	other, _ := f.watch(ctx, t, f.url, "123456").next(t)
	if len(other.Changes) == 0 || other.Changes[0].Number != 1 {
		t.Errorf("a page of an earlier server gets %+v", other.Changes)
	}
}

// The report gives the reason of each GPU why requests wait.
func TestWhy(t *testing.T) {
	f := start(t, "gpus: ['7']\npolicy: {name: fcfs}\nmodels:\n- {name: m0, command: [e, '{port}'], memory: 0.6, slots: 1}\n- {name: m1, command: [e, '{port}'], memory: 0.6}\n",
		func(_ int, s *stubengine.Stub) { s.Service = time.Hour })
	f.crowd(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = stubengine.Ask(ctx, f.url, "m1", "x", false) }()
	soon(t, "m1 waits", func() bool { r := f.report(); return r.Models[1].Waiting == 1 })
	r := f.report()
	for i, want := range []string{"GPU 7: its engine has as many requests as it takes", "GPU 7: engines with requests, and kept ones, leave too little memory"} {
		if m := r.Models[i]; m.Waiting != 1 || m.Why != want {
			t.Errorf("%d requests of %s wait: %q, want %q", m.Waiting, m.Name, m.Why, want)
		}
	}
	if m := r.Models[0]; m.Running != 1 {
		t.Errorf("m0 %+v", m)
	}
}

// The number of changes that a server keeps is bounded. Their numbers and counts go on.
func TestHistoryIsBounded(t *testing.T) {
	var h history
	const n = 3*newestChanges + 7
	for range n {
		h.add(Change{Model: "m", State: agent.Awake})
	}
	kept := h.since(0)
	if len(kept) > newestChanges || len(kept) < newestChanges/2 || kept[len(kept)-1].Number != n || h.counts()[0].n != n {
		t.Errorf("%d changes are kept, the last is %+v, counted %+v", len(kept), kept[len(kept)-1], h.counts())
	}
	if got := h.since(n - 3); len(got) != 3 || got[0].Number != n-2 {
		t.Errorf("since the fourth last: %+v", got)
	}
}

// A key as a password opens the page, as browsers send it. It does not open the endpoints that do work.
func TestPageKeys(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := start(t, config("mqfq", 1, "keys: "+keys+"\n"), nil)
	for _, row := range []struct {
		method, path, user, password string
		status                       int
	}{
		{"GET", "/", "", "", 401}, {"GET", "/", "me", "secret", 200}, {"GET", "/", "me", "wrong", 401}, {"GET", "/events", "", "", 401},
		{"GET", "/metrics", "me", "secret", 401}, {"POST", "/v1/completions", "me", "secret", 401}, {"GET", "/other", "me", "secret", 401},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, f.url+row.path, strings.NewReader(`{"model": "m0", "prompt": "x"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if row.user != "" {
			r.SetBasicAuth(row.user, row.password)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != row.status {
			t.Errorf("%s %s as %s, %q: %s, want %d", row.method, row.path, row.user, row.password, response.Status, row.status)
		}
	}
}

// The page loads no other file, and its policy forbids the browser to load any.
func TestPageStandsAlone(t *testing.T) {
	f := start(t, config("mqfq", 1, ""), nil)
	response, err := http.Get(f.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?:https?:)?//[a-z]|src=|@import|innerHTML`).FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1); found != nil {
		t.Errorf("the page has %q", found)
	}
	if policy := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
}

// The number of open pages is bounded, and open pages do not delay the end of a server.
func TestPagesEnd(t *testing.T) {
	f := start(t, config("mqfq", 1, ""), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	var open []*stream
	for range maxWatchers {
		s := f.watch(t.Context(), t, "http://"+l.Addr().String(), "")
		s.next(t)
		open = append(open, s)
	}
	if response, err := http.Get("http://" + l.Addr().String() + "/events"); err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one page more: %+v, %v", response, err)
	} else {
		_ = response.Body.Close()
	}
	cancel()
	for _, s := range open {
		for _, ok := s.next(t); ok; _, ok = s.next(t) {
		}
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(drainLimit / 2):
		t.Error("the server waits for pages")
	}
}
