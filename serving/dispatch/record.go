package dispatch

import (
	"errors"
	"fmt"
	"io"
)

// Record has the requests and engines of a server's log.
type Record struct {
	Config
	Asked   []Asked // in order of arrival
	Engines map[string]*Life
	To      float64 // time of the last line
}

// Asked is a request. Times are in seconds.
type Asked struct {
	Model   string
	At      float64
	Served  bool    // Service and Latency are known
	Service float64 // running time, without waiting and without a start
	Latency float64
}

// Life counts the starts, wake-ups and failures of a model's engines.
type Life struct {
	Starts, Wakes, Failures int
	StartSeconds            []float64 // of starts that succeeded
	WakeSeconds             []float64
}

// ReadRecord reads a log that a server has written. The log has to replay, and to end with a whole line. Config is the last one of the
// log.
func ReadRecord(r io.Reader) (*Record, error) {
	out := &Record{Engines: map[string]*Life{}}
	asked := map[int]int{}         // index by ID
	since := map[[2]string]began{} // by GPU and model
	replayed, err := replay(r, func(x *line) error {
		out.To = max(out.To, x.At)
		switch {
		case x.Run != nil:
			if len(x.Run.Models) == 0 {
				return errors.New("the run names no models (it is of a simulation)")
			}
			out.Config = *x.Run
		case x.Arrive != nil:
			// A request that waits while the configuration changes arrives again.
			// mutant: requests that arrive again
			if _, known := asked[x.Arrive.ID]; !known {
				asked[x.Arrive.ID] = len(out.Asked)
				out.Asked = append(out.Asked, Asked{Model: out.Models[x.Arrive.Fn].Name, At: x.At})
			}
		case x.Done != nil:
			a := &out.Asked[asked[x.Done.ID]]
			a.Served, a.Service, a.Latency = true, x.Done.Service, x.Done.Latency
		case x.Engine != nil:
			out.entered(x, since)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case replayed.Cut:
		return nil, &FormatError{replayed.Lines, errors.New("the line is cut: the server was killed, or its disk was full (remove this line to use the others)")}
	case len(out.Asked) == 0:
		return nil, &FormatError{replayed.Lines, errors.New("the log ends without a request")}
	}
	return out, nil
}

// began is the time at which an engine entered a state.
type began struct {
	state string
	at    float64
}

// entered counts the starts and wakes of a model.
func (r *Record) entered(x *line, since map[[2]string]began) {
	name := r.Models[x.Engine.Fn].Name
	l := r.Engines[name]
	if l == nil {
		l = &Life{}
		r.Engines[name] = l
	}
	at := [2]string{fmt.Sprint(x.Engine.GPU), name}
	before := since[at]
	since[at] = began{x.Engine.State, x.At}
	switch x.Engine.State {
	case "starting":
		l.Starts++
	case "waking":
		l.Wakes++
	case "failed":
		l.Failures++
	case "awake":
		switch before.state {
		case "starting":
			l.StartSeconds = append(l.StartSeconds, x.At-before.at)
		case "waking":
			l.WakeSeconds = append(l.WakeSeconds, x.At-before.at)
		}
	}
}
