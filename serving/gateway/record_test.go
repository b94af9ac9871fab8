package gateway

import (
	"fmt"
	"testing"

	"medusa/serving/dispatch"
	"medusa/test/stubengine"
)

// The log of a server names its models, their requests, and the starts and wakes of their engines.
func TestRecord(t *testing.T) {
	var f *fixture
	t.Cleanup(func() { // after the server's own, which closes the log
		r, err := dispatch.ReadRecord(&f.log)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Models) != 2 || r.Models[1].Name != "m1" || r.Models[1].Memory != 0.6 || r.Models[1].Slots != 8 || r.Models[1].Sleep != 1 || r.HostGB != 1 {
			t.Errorf("configuration %+v", r.Config)
		}
		m0, m1 := r.Engines["m0"], r.Engines["m1"]
		if m0 == nil || m1 == nil || m0.Starts != 2 || m0.Wakes != 0 || len(m0.StartSeconds) != 2 || m1.Starts != 1 || m1.Wakes != 1 || len(m1.WakeSeconds) != 1 {
			t.Errorf("engines of m0 %+v, of m1 %+v", m0, m1)
		}
		for i, a := range r.Asked {
			if a.Model != fmt.Sprint("m", i%2) || !a.Served || a.Latency < a.Service {
				t.Errorf("request %d: %+v", i, a)
			}
		}
		if len(r.Asked) != 4 {
			t.Errorf("%d requests", len(r.Asked))
		}
	})
	text := "gpus: ['0']\nhost_memory_gb: 1\nmodels:\n- {name: m0, memory: 0.6, command: ['{port}']}\n- {name: m1, memory: 0.6, sleep: 1, command: ['{port}']}\n"
	f = start(t, text, nil)
	for i := range 4 {
		if _, err := stubengine.Ask(t.Context(), f.url, fmt.Sprint("m", i%2), "x", false); err != nil {
			t.Fatal(err)
		}
	}
}
