package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"medusa/serving/agent"
)

// Models are started with the server, listed, stopped on demand and when nobody asks.
func TestOperate(t *testing.T) {
	release := make(chan bool)
	var inside atomic.Int32
	f := echoes(t, "gpus: ['0']\nhealth: 0.02\nmodels:\n- {name: org/a, memory: 0.4, command: ['{port}'], preload: true, aliases: [short]}\n"+
		"- {name: b, memory: 0.4, command: ['{port}'], ttl: 0.3}\n- {name: c, memory: 0.7, command: ['{port}'], preload: true}\n", nil,
		func(w http.ResponseWriter, r *http.Request) {
			inside.Add(1)
			defer inside.Add(-1)
			if r.Header.Get("X-Wait") != "" {
				<-release
			}
		})
	state := func(place int) agent.State { return f.agent.Standing(0, place).State }
	soon(t, "the first model starts by itself", func() bool { return state(0) == agent.Awake })
	if !strings.Contains(f.said.String(), "preload c: no GPU has room") || state(2) != agent.Cold {
		t.Errorf("c is %s: %s", state(2), f.said.String())
	}
	if status, text, _ := f.do(t, "GET", "/running", ""); status != 200 || !strings.Contains(text, `{"running":[{"model":"org/a","gpu":"0","state":"awake","since_s":`) {
		t.Errorf("%d %s", status, text)
	}
	answered := make(chan int)
	go func() {
		status, _, _ := f.do(t, "POST", "/v1/completions", `{"model":"org/a"}`, "X-Wait", "1")
		answered <- status
	}()
	soon(t, "the request is at the engine", func() bool { return inside.Load() == 1 })
	if status, text, _ := f.do(t, "POST", "/models/short/unload", ""); status != 200 || text != `{"model":"org/a","engines":1}`+"\n" {
		t.Errorf("%d %s", status, text)
	}
	if state(0) != agent.Awake {
		t.Error("an engine is stopped with its request")
	}
	release <- true
	if status := <-answered; status != 200 {
		t.Errorf("the request of an engine that is to end: %d", status)
	}
	soon(t, "the engine is stopped after its request", func() bool { return state(0) == agent.Cold })
	if status, text, _ := f.do(t, "POST", "/models/org/a/unload", ""); status != 200 || !strings.Contains(text, `"engines":0`) {
		t.Errorf("%d %s", status, text)
	}
	for path, want := range map[string]string{"/models/x/unload": "model_not_found", "/models/org/a": "unknown_url", "/models/unload": "unknown_url"} {
		if status, text, _ := f.do(t, "POST", path, ""); status != 404 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, _ := f.do(t, "POST", "/v1/completions", `{"model":"b"}`); status != 200 {
		t.Fatal(status)
	}
	if status, _, _ := f.do(t, "POST", "/v1/completions", `{"model":"org/a"}`); status != 200 {
		t.Fatal(status)
	}
	soon(t, "an engine that nobody asks is stopped", func() bool { return state(1) == agent.Cold })
	if state(0) != agent.Awake {
		t.Error("a model without ttl is stopped, too")
	}
}
