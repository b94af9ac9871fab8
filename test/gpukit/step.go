package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Step is one thing that is tried on the device. Each ends within its limit, whatever the programs that it starts do.
type Step struct {
	Number int
	Name   string
	Limit  time.Duration
	Do     func(*Attempt) error // nil: all that the step expects was seen
}

// Row is one line of a step's table: the subject, and the finding.
type Row struct {
	What  string `json:"what"`
	Found string `json:"found"`
}

// Result is the result of a step.
type Result struct {
	Step    int     `json:"step"`
	Name    string  `json:"name"`
	Device  string  `json:"device"`
	Verdict string  `json:"verdict"` // PASS or FAIL
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit_seconds"`
	Rows    []Row   `json:"rows"`
}

const (
	pass = "PASS"
	fail = "FAIL"
)

// Attempt is a step under way.
type Attempt struct {
	*Kit
	ctx  context.Context
	log  *os.File
	rows []Row
}

func (a *Attempt) row(what, format string, args ...any) {
	a.rows = append(a.rows, Row{what, fmt.Sprintf(format, args...)})
}

// try makes a step and judges it. Findings before its limit or its failure are kept.
func (k *Kit) try(ctx context.Context, s Step) Result {
	r := Result{Step: s.Number, Name: s.Name, Device: k.Device, Verdict: fail, Limit: s.Limit.Seconds(), Rows: []Row{}}
	log, err := os.Create(filepath.Join(k.Work, "logs", fmt.Sprintf("step-%02d.txt", s.Number)))
	if err != nil {
		r.Reason = err.Error()
		return k.placeless(r)
	}
	defer log.Close()
	within, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	a := &Attempt{Kit: k, ctx: within, log: log}
	began := time.Now()
	err = s.Do(a)
	r.Seconds = time.Since(began).Seconds()
	r.Rows = append(r.Rows, a.rows...)
	switch {
	case errors.Is(within.Err(), context.DeadlineExceeded):
		r.Reason = fmt.Sprintf("it took longer than %v", s.Limit)
		if err != nil {
			r.Reason += ": " + err.Error()
		}
	case err != nil:
		r.Reason = err.Error()
	case len(a.rows) == 0:
		r.Reason = "it looked at nothing"
	default:
		r.Verdict = pass
	}
	return k.placeless(r)
}

// placeless replaces the paths of the kit's folders by names: the page does not depend on their places on a machine.
func (k *Kit) placeless(r Result) Result {
	names := strings.NewReplacer(k.Work, "work", k.Out, "results", k.Root, "gpu-kit")
	r.Reason = names.Replace(r.Reason)
	for i := range r.Rows {
		r.Rows[i].Found = names.Replace(r.Rows[i].Found)
	}
	return r
}
