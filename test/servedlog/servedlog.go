// Package servedlog writes decision logs as medusa serve would, of days of requests in no time.
//
// In: models of one GPU, and requests of which the caller knows how they were served. Out: the log, under policy fcfs.
package servedlog

import (
	"io"
	"slices"

	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// Request is served at once. Start is the time of the start that it had to wait for, or 0.
type Request struct {
	Model          int
	At             float64
	Start, Service float64
}

// Write writes the log. No request may come before the one before it has ended.
func Write(w io.Writer, models []dispatch.Model, list []Request) error {
	log := dispatch.NewLog(w)
	core, err := dispatch.New(dispatch.Config{Policy: "fcfs", Params: schedule.Params{Functions: len(models)}, GPUs: 1, Models: models}, free{}, log)
	if err != nil {
		return err
	}
	for id, r := range list {
		core.Arrive(r.At, schedule.Request{ID: id, Fn: r.Model})
		core.Next(r.At)
		core.Next(r.At)
		if r.Start > 0 {
			log.Engine(r.At, 0, r.Model, "starting")
			log.Engine(r.At+r.Start, 0, r.Model, "awake")
		}
		core.Done(r.At+r.Start+r.Service, id, r.Service, r.Start+r.Service, 0)
		core.Next(r.At + r.Start + r.Service)
	}
	return log.Close()
}

// free is a GPU that has room for all.
type free struct{}

func (free) GPUs() int                    { return 1 }
func (free) Accepts(int, int) bool        { return true }
func (free) Holds(int, int) bool          { return true }
func (free) InFlight(int) int             { return 0 }
func (free) Start(int, int) float64       { return 0 }
func (free) Service(int) float64          { return 1 }
func (free) FinishTime(int) float64       { return 0 }
func (free) Traffic(int) schedule.Traffic { return schedule.Quiet }
func (free) Utilization(int) float64      { return 0 }

// Two models of 0.6 of the GPU, bob and carl, and one of 0.4 take turns. Whenever carl comes, ann is the one who was not used for longest, so both
// ann and bob go: no model is ever warm. If ann were kept, bob alone would go, and bob and carl would be cold as before.
var models = []dispatch.Model{
	{Name: "ann", Memory: 0.4, Slots: 1, Start: 1, Wake: 1, Service: 1},
	{Name: "bob", Memory: 0.6, Slots: 1, Start: 1, Wake: 1, Service: 1},
	{Name: "carl", Memory: 0.6, Slots: 1, Start: 1, Wake: 1, Service: 1},
}

// Ann returns models and requests: ann is asked every so many seconds, at least 30, and starts in 20; bob and carl follow, and start in 2. All are
// cold each time. Keeping ann saves her 20 s of each request but the first. The others save no time.
func Ann(every, seconds float64) ([]dispatch.Model, []Request) {
	var list []Request
	for at := 0.0; at <= seconds; at += every {
		list = append(list, Request{0, at, 20, 1}, Request{1, at + 22, 2, 1}, Request{2, at + 26, 2, 1})
	}
	return slices.Clone(models), list
}
