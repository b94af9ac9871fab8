package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// A log made by hand: requests 2 and 3 are decided before request 1 of model 0, which arrived earlier. Request 2 is of
// model 1.
const byHand = `{"medusa_decisions":2,"run":{}}
{"t":0,"arrive":{"id":0,"fn":0}}
{"t":0,"next":{"decided":{"id":0,"fn":0,"gpu":0,"peer":-1}}}
{"t":1,"arrive":{"id":1,"fn":0}}
{"t":1,"arrive":{"id":2,"fn":1}}
{"t":1,"arrive":{"id":3,"fn":1}}
{"t":1,"arrive":{"id":4,"fn":0}}
{"t":1,"arrive":{"id":5,"fn":1}}
{"t":2,"done":{"id":0,"fn":0,"gpu":0,"service_s":2,"latency_s":2}}
{"t":2,"next":{"decided":{"id":2,"fn":1,"gpu":0,"peer":-1}}}
{"t":6,"done":{"id":2,"fn":1,"gpu":0,"service_s":3,"latency_s":5}}
{"t":6,"next":{"decided":{"id":3,"fn":1,"gpu":0,"peer":-1}}}
{"t":8,"done":{"id":3,"fn":1,"gpu":0,"service_s":2,"latency_s":7}}
{"t":8,"next":{"decided":{"id":1,"fn":0,"gpu":0,"peer":-1}}}
{"t":9,"done":{"id":1,"fn":0,"gpu":0,"service_s":1,"latency_s":8}}
{"t":9,"next":{"decided":{"id":4,"fn":0,"gpu":0,"peer":-1}}}
{"t":10,"done":{"id":4,"fn":0,"gpu":0,"service_s":1,"latency_s":9}}
{"t":10,"next":{"decided":{"id":5,"fn":1,"gpu":0,"peer":-1}}}
{"t":11,"done":{"id":5,"fn":1,"gpu":0,"service_s":1,"latency_s":10}}
`

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := readLog(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.list) != 5 || h.overtaken() != 2 || h.longest() != 4 || h.shortest() != 1 || h.service(1) != 3 {
		t.Errorf("%d requests, %d overtake, %g to %g s, service %g s", len(h.list), h.overtaken(), h.shortest(), h.longest(), h.service(1))
	}
	if all, least := h.inTime(7); math.Abs(all-0.4) > 1e-9 || least != 0 {
		t.Errorf("%g in time, of the worst model %g", all, least)
	}
	// Both wait from 1 to 9: model 1, whose weight is 2, is served for 3 s from 3 on and for 2 s more, then model 0 for 1 s.
	if got := h.apart(0, 1, func(m int) float64 { return 1 + float64(m) }); math.Abs(got-2.5) > 1e-9 {
		t.Errorf("services are %g s apart", got)
	}
}
