package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"

	"medusa/graphir"
	"medusa/restore"
	"medusa/runners/reference/marks"
)

// answer is the outcome of one artifact.
type answer struct {
	Stage  string `json:"stage"` // the last one that was begun: decode, validate, identify, rebuild, ready
	Detail string `json:"detail,omitempty"`
}

// sessions is ZOO_SESSIONS=1: instead of serving, the engine opens a session for each artifact that a line of its standard
// input names, as far as restored graphs that could be launched, gives all back, and writes a line of JSON. Thousands of
// artifacts can be tried in one process, whose memory and modules are those of the start that they claim to be recorded from.
func (z *zoo) sessions() error {
	if err := z.load(); err != nil {
		return err
	}
	marks.Begin(marks.WarmUp)
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := os.Setenv("MEDUSA_ARTIFACT", lines.Text()); err != nil {
			return err
		}
		s, err := restore.FromEnv(restore.Hooks{End: os.Exit})
		if err != nil {
			return err
		}
		got := answer{Stage: "decode"}
		err = marks.Medusa(func() error { return z.restoreIn(s, &got.Stage) })
		var fallback *restore.Fallback
		if errors.As(err, &fallback) {
			got.Detail = fallback.Error()
		} else if err != nil {
			return err
		}
		var invalid *graphir.ValidationError
		if got.Stage == "decode" && errors.As(err, &invalid) {
			got.Stage = "validate"
		}
		if err := marks.Medusa(s.Close); err != nil { // no answer: it is this artifact's fault
			return err
		}
		if err := out.Encode(got); err != nil {
			return err
		}
	}
	return lines.Err()
}

// restoreIn asks a session for everything that a start asks it for.
func (z *zoo) restoreIn(s *restore.Session, stage *string) error {
	if f := s.Fallback(); f != nil { // it could not be read
		return f
	}
	*stage = "identify"
	if err := s.Identify(factors()); err != nil {
		return err
	}
	s.KVBytes()
	*stage = "rebuild"
	for range s.Triggers() {
		if err := s.Trigger(z.firstLayer); err != nil {
			return err
		}
	}
	if _, err := s.Graphs(); err != nil {
		return err
	}
	*stage = "ready"
	return nil
}
