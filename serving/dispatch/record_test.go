package dispatch

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"medusa/serving/schedule"
)

// A record has each request once, with the name of its model, and the starts of engines. The configuration is the last one.
func TestReadRecord(t *testing.T) {
	var data bytes.Buffer
	log := NewLog(&data)
	w := newWorld(1, 1)
	config := func(names ...string) Config {
		c := Config{Policy: "fcfs", Params: paramsFor(len(names)), GPUs: 1}
		for _, name := range names {
			c.Models = append(c.Models, Model{Name: name})
		}
		return c
	}
	core, err := New(config("a", "b"), w, log)
	if err != nil {
		t.Fatal(err)
	}
	request := schedule.Request{ID: 7, Fn: 1}
	core.Arrive(1, request)
	if core, err = New(config("a", "b", "c"), w, log); err != nil {
		t.Fatal(err)
	}
	core.Arrive(2, request) // it has waited
	core.Next(2)
	log.Engine(1.5, 0, 1, "starting") // engine states are reported a little late
	log.Engine(5, 0, 1, "awake")
	core.Done(6, 7, 1, 5, 0)
	log.Engine(7, 0, 1, "waking")
	log.Engine(7.5, 0, 1, "awake")
	log.Engine(8, 0, 2, "starting")
	log.Engine(8, 0, 2, "failed")
	core.Arrive(9, schedule.Request{ID: 8, Fn: 2})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRecord(&data)
	if err != nil {
		t.Fatal(err)
	}
	want := []Asked{{Model: "b", At: 1, Served: true, Service: 1, Latency: 5}, {Model: "c", At: 9}}
	if len(r.Asked) != 2 || r.Asked[0] != want[0] || r.Asked[1] != want[1] || len(r.Models) != 3 || r.To != 9 {
		t.Errorf("%+v", r)
	}
	if b := r.Engines["b"]; b == nil || b.Starts != 1 || b.Wakes != 1 || len(b.StartSeconds) != 1 || b.StartSeconds[0] != 3.5 || len(b.WakeSeconds) != 1 || b.WakeSeconds[0] != 0.5 {
		t.Errorf("b: %+v", b)
	}
	if c := r.Engines["c"]; c == nil || c.Starts != 1 || c.Failures != 1 || c.StartSeconds != nil {
		t.Errorf("c: %+v", c)
	}
}

// Kept models have to leave room for every other one, on whichever GPUs they lie. Two of 0.3 can both lie on each of two GPUs. A third
// model then finds room only if it takes at most 0.7.
func TestCheckKept(t *testing.T) {
	for _, row := range []struct {
		gpus int
		kept []float64
		most float64 // that another model may take
	}{{1, []float64{0.4}, 0.6}, {2, []float64{0.3, 0.3}, 0.7}, {2, []float64{0.3}, 0.85}, {1, nil, 1}, {3, []float64{0.5, 0.5, 0.5}, 0.5}} {
		var models []Model
		for _, memory := range row.kept {
			models = append(models, Model{Name: "kept", Memory: memory, Keep: true})
		}
		for memory, ok := range map[float64]bool{row.most: true, math.Nextafter(row.most, 2) + 1e-6: false} {
			err := CheckKept(append(models, Model{Name: "other", Memory: memory}), row.gpus)
			if ok && err != nil || !ok && row.kept != nil && (err == nil || !strings.Contains(err.Error(), "other")) {
				t.Errorf("%+v beside %g: %v", row, memory, err)
			}
		}
	}
}
