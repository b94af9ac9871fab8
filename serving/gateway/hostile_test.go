package gateway

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"medusa/internal/yamlfile"
	"medusa/test/stubengine"
)

// YAML values that have no meaning are found at their lines. They would divide by zero or overflow later.
func TestMeaninglessValues(t *testing.T) {
	model := func(text string) string { return strings.Replace(good, "name: a", "name: a\n  "+text, 1) }
	top := func(text string) string { return strings.Replace(good, "gpus:", text+"\ngpus:", 1) }
	for _, row := range []struct {
		text string
		line int
		want string
	}{
		{strings.Replace(good, `["0"]`, `["0", "1", "0"]`, 1), 3, "twice"},
		{strings.Replace(good, `["0"]`, `["0", ""]`, 1), 3, "empty"},
		{model("timeout: .inf"), 6, "timeout"},
		{model("timeout: 1e300"), 6, "timeout"},
		{model("timeout: .nan"), 6, "timeout"},
		{model("timeout: 0"), 6, "timeout"},
		{model("timeout: -1"), 6, "timeout"},
		{model("weight: .inf"), 6, "weight"},
		{model("weight: 0"), 6, "weight"},
		{model("slots: 0"), 6, "slots"},
		{model("memory: 0"), 6, "share"},
		{model("service: -1"), 6, "service"},
		{model("host_gb: .nan"), 6, "host_gb"},
		{model("host_gb: 1e12"), 6, "host_gb"},
		{model("start_limit: .inf"), 6, "start_limit"},
		{model("slots: many"), 6, "needs a whole number"},
		{model("env: [a]"), 6, "mapping is expected"},
		{model("command: [x]"), 7, "already defined"},
		{top("gpus: [a]"), 4, "already defined"},
		{top("health: [5]"), 3, "needs a number"},
		{strings.Replace(good, `["0"]`, "{a: b}", 1), 3, "expected"},
		{top("health: .inf"), 3, "health"},
		{top("retry: 1e300"), 3, "retry"},
		{top("host_memory_gb: .inf"), 3, "host_memory_gb"},
		{top("policy: {t: .inf}"), 3, "t must"},
		{top("policy: {alpha: .inf}"), 3, "alpha must"},
	} {
		_, err := parse("serve.yaml", []byte(row.text))
		var at *yamlfile.Error
		if !errors.As(err, &at) || at.Line != row.line || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v; want line %d and %q in %s", err, row.line, row.want, row.text)
		}
	}
}

// Requests that an engine refuses are not measured. They are refused at once, so clients could make estimates worthless with
// them.
func TestRefusedRequestsAreNotMeasured(t *testing.T) {
	f := start(t, strings.Replace(config("mqfq", 1, ""), "service: 0.01", "service: 7", 1), nil)
	for range 3 {
		var got *stubengine.StatusError
		if _, err := stubengine.Post(t.Context(), f.url+"/v1/completions", []byte(`{"model": "m0", "prompt": 5}`), false); !errors.As(err, &got) || got.Status != 400 {
			t.Fatal(err)
		}
	}
	if got := f.agent.Service(0); got != 7 {
		t.Errorf("after refused requests an answer is expected to take %v s, want 7", got)
	}
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Fatal(err)
	}
	soon(t, "the answer is measured", func() bool { return f.agent.Service(0) != 7 }) // measured after the client has it
}

// A client that reads no answer keeps its place until the request's time is up, and no longer.
func TestClientThatDoesNotRead(t *testing.T) {
	// On a slow machine the time may be up before the answer begins. Then the next attempt gets more time.
	for timeout := time.Second; !readsNothing(t, timeout); timeout *= 4 {
		if timeout > patience {
			t.Fatalf("no answer begins within %v", timeout)
		}
	}
}

// readsNothing sends a request, reads no answer, and waits until the request ends. It reports whether the answer had begun.
func readsNothing(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	f := start(t, fmt.Sprintf("gpus: ['0']\nmax_body: 100000000\npolicy: {name: fcfs}\nmodels:\n- {name: m0, command: [e, '{port}'], timeout: %g}\n", timeout.Seconds()), nil)
	if _, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		return false
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"model": "m0", "prompt": "` + strings.Repeat("x", 16<<20) + `"}` // more than sockets hold
	if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(timeout + patience); ; time.Sleep(5 * time.Millisecond) {
		f.count.mu.Lock()
		ended, begun := 0, f.count.answers["m0"][504] == 1 // 499 if the server has noticed sooner
		for _, n := range f.count.answers["m0"] {
			ended += n
		}
		f.count.mu.Unlock()
		if _, running := f.queue.Queued(); running == 0 && ended == 2 {
			return begun
		}
		if time.Now().After(end) {
			t.Fatal("the request goes on")
		}
	}
}
