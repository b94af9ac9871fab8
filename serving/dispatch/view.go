package dispatch

import (
	"fmt"
	"strconv"
	"strings"

	"medusa/serving/schedule"
)

// lossy is the view without the GPUs that were lost.
type lossy struct {
	schedule.Cluster
	gone []bool
}

func (v lossy) Accepts(gpu, fn int) bool { return !v.gone[gpu] && v.Cluster.Accepts(gpu, fn) }
func (v lossy) Holds(gpu, fn int) bool   { return !v.gone[gpu] && v.Cluster.Holds(gpu, fn) }

// asked is a question to a view.
type asked struct {
	what    question
	gpu, fn int // -1: the question has none
}

type question int

const (
	accepts question = iota
	holds
	inFlight
	start
	service
	finishTime
	traffic
	utilization
	questions
)

var questionNames = [questions]string{"accepts", "holds", "in_flight", "start", "service", "finish_time", "traffic", "utilization"}

// String is the form of a log: "start 0 3" for GPU 0 and function 3.
func (q asked) String() string { return fmt.Sprintf("%s %d %d", questionNames[q.what], q.gpu, q.fn) }

// recorder passes questions on and records each answer that differs from the last one to the same
// question.
type recorder struct {
	schedule.Cluster
	last    map[asked]float64
	changed []string
}

func (r *recorder) note(q asked, answer float64) {
	// mutant: answers that changed
	if old, known := r.last[q]; known && old == answer {
		return
	}
	r.last[q] = answer
	r.changed = append(r.changed, q.String()+" "+strconv.FormatFloat(answer, 'g', -1, 64))
}

func noted[T int | float64 | schedule.Traffic](r *recorder, q asked, answer T) T {
	r.note(q, float64(answer))
	return answer
}

func (r *recorder) notedBool(q asked, answer bool) bool {
	if answer {
		r.note(q, 1)
	} else {
		r.note(q, 0)
	}
	return answer
}

func (r *recorder) Accepts(gpu, fn int) bool {
	return r.notedBool(asked{accepts, gpu, fn}, r.Cluster.Accepts(gpu, fn))
}
func (r *recorder) Holds(gpu, fn int) bool {
	return r.notedBool(asked{holds, gpu, fn}, r.Cluster.Holds(gpu, fn))
}
func (r *recorder) InFlight(gpu int) int {
	return noted(r, asked{inFlight, gpu, -1}, r.Cluster.InFlight(gpu))
}
func (r *recorder) Start(gpu, fn int) float64 {
	return noted(r, asked{start, gpu, fn}, r.Cluster.Start(gpu, fn))
}
func (r *recorder) Service(fn int) float64 {
	return noted(r, asked{service, -1, fn}, r.Cluster.Service(fn))
}
func (r *recorder) FinishTime(gpu int) float64 {
	return noted(r, asked{finishTime, gpu, -1}, r.Cluster.FinishTime(gpu))
}
func (r *recorder) Traffic(gpu int) schedule.Traffic {
	return noted(r, asked{traffic, gpu, -1}, r.Cluster.Traffic(gpu))
}
func (r *recorder) Utilization(gpu int) float64 {
	return noted(r, asked{utilization, gpu, -1}, r.Cluster.Utilization(gpu))
}

// answers is a view made of the answers in a log.
type answers struct {
	gpus    int
	known   map[asked]float64
	missing *asked // the first question that the log does not answer
}

// learn reads an answer of a log.
func (a *answers) learn(text string) error {
	f := strings.Fields(text)
	if len(f) != 4 {
		return fmt.Errorf("answer %q: %d words, not 4", text, len(f))
	}
	q := asked{what: -1}
	for i, name := range questionNames {
		if name == f[0] {
			q.what = question(i)
		}
	}
	var err [3]error
	var value float64
	q.gpu, err[0] = strconv.Atoi(f[1])
	q.fn, err[1] = strconv.Atoi(f[2])
	value, err[2] = strconv.ParseFloat(f[3], 64)
	if q.what < 0 || err[0] != nil || err[1] != nil || err[2] != nil {
		return fmt.Errorf("answer %q: not a question, GPU, function and number", text)
	}
	a.known[q] = value
	return nil
}

func (a *answers) answer(q asked) float64 {
	v, ok := a.known[q]
	if !ok && a.missing == nil {
		a.missing = &q
	}
	return v
}

func (a *answers) GPUs() int                  { return a.gpus }
func (a *answers) Accepts(gpu, fn int) bool   { return a.answer(asked{accepts, gpu, fn}) != 0 }
func (a *answers) Holds(gpu, fn int) bool     { return a.answer(asked{holds, gpu, fn}) != 0 }
func (a *answers) InFlight(gpu int) int       { return int(a.answer(asked{inFlight, gpu, -1})) }
func (a *answers) Start(gpu, fn int) float64  { return a.answer(asked{start, gpu, fn}) }
func (a *answers) Service(fn int) float64     { return a.answer(asked{service, -1, fn}) }
func (a *answers) FinishTime(gpu int) float64 { return a.answer(asked{finishTime, gpu, -1}) }
func (a *answers) Traffic(gpu int) schedule.Traffic {
	return schedule.Traffic(a.answer(asked{traffic, gpu, -1}))
}
func (a *answers) Utilization(gpu int) float64 { return a.answer(asked{utilization, gpu, -1}) }
