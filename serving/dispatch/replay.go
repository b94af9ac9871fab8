package dispatch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"medusa/serving/schedule"
)

// FormatError is damage in a log.
type FormatError struct {
	Line  int
	Cause error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read decision log: line %d: %v", e.Line, e.Cause)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Cause }

// DecisionError is a line of a log that differs from the policy's answer.
type DecisionError struct {
	Line   int
	Logged string
	Policy string
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("replay decision log: line %d: the log has %s, the policy %s", e.Line, e.Logged, e.Policy)
}

// Replayed counts the contents of a log.
type Replayed struct {
	Runs      int
	Requests  int
	Decisions int
	Lines     int
	Cut       bool // the last line is incomplete: the server was killed, or its disk was full
}

// Limits for a run of a log. They bound the memory that a policy takes.
const (
	maxLine      = 16 << 20
	maxGPUs      = 1 << 12
	maxFunctions = 1 << 16
)

// Replay makes the decisions of a log's runs again. It fails at the first line that differs from the policy's
// answer.
func Replay(r io.Reader) (Replayed, error) { return replay(r, func(*line) error { return nil }) }

// replay calls note with each line that it has found good.
func replay(r io.Reader, note func(*line) error) (Replayed, error) {
	var out Replayed
	var p *player
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	whole := true
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, token, err := bufio.ScanLines(data, atEOF)
		whole = n > 0 && data[n-1] == '\n'
		return n, token, err
	})
	n := 0
	for lines.Scan() {
		n++
		var x line
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		err := dec.Decode(&x)
		switch {
		// mutant: logs that are cut
		case errors.Is(err, io.ErrUnexpectedEOF) && !whole && p != nil:
			out.Cut, out.Lines = true, n
			return out, nil
		case err != nil:
		case x.Run != nil:
			p, err = newPlayer(&x)
			out.Runs++
		case p == nil:
			err = errors.New("no run begins here")
		default:
			err = p.play(&x, &out)
		}
		if err == nil {
			err = note(&x)
		}
		var differs *DecisionError
		if errors.As(err, &differs) {
			differs.Line = n
			return out, err
		}
		if err != nil {
			return out, &FormatError{n, err}
		}
	}
	if err := lines.Err(); err != nil {
		return out, &FormatError{n + 1, err}
	}
	if n == 0 {
		return out, &FormatError{1, io.ErrUnexpectedEOF}
	}
	out.Lines = n
	return out, nil
}

// player makes the calls of one run.
type player struct {
	config  Config
	core    *Core
	view    *answers
	at      float64
	waiting map[int]int // function by ID
}

func newPlayer(x *line) (*player, error) {
	c := x.Run
	switch {
	case x.Version != formatVersion:
		return nil, fmt.Errorf("format %d, this program reads %d", x.Version, formatVersion)
	case c.GPUs > maxGPUs:
		return nil, fmt.Errorf("%d GPUs", c.GPUs)
	case c.Params.Functions > maxFunctions:
		return nil, fmt.Errorf("%d functions", c.Params.Functions)
	case len(c.Models) > 0 && len(c.Models) != c.Params.Functions:
		return nil, fmt.Errorf("%d models of %d functions", len(c.Models), c.Params.Functions)
	}
	view := &answers{gpus: c.GPUs, known: map[asked]float64{}}
	core, err := New(*c, view, nil)
	return &player{config: *c, core: core, view: view, waiting: map[int]int{}}, err
}

// play makes the call of a line. A call that no Core could have logged is an error.
func (p *player) play(x *line, out *Replayed) error {
	if e := x.Engine; e != nil {
		if e.GPU < 0 || e.GPU >= p.config.GPUs || e.Fn < 0 || e.Fn >= p.config.Params.Functions {
			return fmt.Errorf("an engine of function %d on GPU %d", e.Fn, e.GPU)
		}
		return nil
	}
	if x.At < p.at {
		return fmt.Errorf("time %g after %g", x.At, p.at)
	}
	p.at = x.At
	switch {
	case x.Arrive != nil:
		r := schedule.Request(*x.Arrive)
		_, waits := p.waiting[r.ID]
		_, runs := p.core.running[r.ID]
		if r.Fn < 0 || r.Fn >= p.config.Params.Functions || waits || runs {
			return fmt.Errorf("request %d of function %d arrives", r.ID, r.Fn)
		}
		out.Requests++
		p.waiting[r.ID] = r.Fn
		p.core.Arrive(x.At, r)
	case x.Cancel != nil:
		r := schedule.Request(x.Cancel.request)
		fn, waits := p.waiting[r.ID]
		if r.Fn < 0 || r.Fn >= p.config.Params.Functions || waits && fn != r.Fn {
			return fmt.Errorf("request %d of function %d leaves", r.ID, r.Fn)
		}
		delete(p.waiting, r.ID)
		if got := p.core.Cancel(x.At, r); got != x.Cancel.Waiting {
			return &DecisionError{Logged: fmt.Sprintf("request %d waiting: %v", r.ID, x.Cancel.Waiting), Policy: fmt.Sprint(got)}
		}
	case x.Next != nil:
		return p.next(x, out)
	case x.Done != nil:
		return p.ran(x.Done.request, x.Done.GPU, func(id int) { p.core.Done(x.At, id, x.Done.Service, x.Done.Latency, x.Done.Deadline) })
	case x.Lost != nil:
		return p.ran(x.Lost.request, x.Lost.GPU, func(id int) { p.core.Lost(x.At, id) })
	case x.Gone != nil:
		if *x.Gone < 0 || *x.Gone >= p.config.GPUs {
			return fmt.Errorf("GPU %d of %d is lost", *x.Gone, p.config.GPUs)
		}
		p.core.leave(x.At, *x.Gone)
	case x.Back != nil:
		if *x.Back < 0 || *x.Back >= p.config.GPUs || !p.core.gone[*x.Back] {
			return fmt.Errorf("GPU %d of %d is back", *x.Back, p.config.GPUs)
		}
		p.core.ReturnGPU(x.At, *x.Back)
	case x.Active != nil:
		if x.Active.Fn < 0 || x.Active.Fn >= p.config.Params.Functions {
			return fmt.Errorf("function %d of %d", x.Active.Fn, p.config.Params.Functions)
		}
		if got := p.core.Active(x.At, x.Active.Fn); got != x.Active.Is {
			return &DecisionError{Logged: fmt.Sprintf("function %d active: %v", x.Active.Fn, x.Active.Is), Policy: fmt.Sprint(got)}
		}
	case x.Freed:
		p.core.Freed(x.At)
	default:
		return errors.New("no call")
	}
	return nil
}

func (p *player) next(x *line, out *Replayed) error {
	for _, text := range x.Next.Seen {
		if err := p.view.learn(text); err != nil {
			return err
		}
	}
	d, ok := p.core.Next(x.At)
	if q := p.view.missing; q != nil {
		return &DecisionError{Logged: "no answer to " + q.String(), Policy: "asks for it"}
	}
	var got *decided
	if ok {
		out.Decisions++
		delete(p.waiting, d.Request.ID)
		got = &decided{request(d.Request), d.GPU, d.Peer}
	}
	// mutant: decisions of a log
	if want := x.Next.Decided; (want == nil) != (got == nil) || want != nil && *want != *got {
		return &DecisionError{Logged: want.String(), Policy: "decides " + got.String()}
	}
	return nil
}

// ran makes a call for a request that runs.
func (p *player) ran(r request, gpu int, call func(id int)) error {
	if d, ok := p.core.running[r.ID]; !ok || d.Request != schedule.Request(r) || d.GPU != gpu {
		return fmt.Errorf("request %d of function %d does not run on GPU %d", r.ID, r.Fn, gpu)
	}
	call(r.ID)
	return nil
}

func (d *decided) String() string {
	if d == nil {
		return "no request"
	}
	return fmt.Sprintf("request %d of function %d on GPU %d (peer %d)", d.ID, d.Fn, d.GPU, d.Peer)
}
