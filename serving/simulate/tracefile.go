package simulate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/internal/yamlfile"
)

// recording has recorded requests in order of arrival. Function is empty if the format has no models.
type recording struct {
	Arrivals []arrival

	fromStart bool // times count from the experiment's start, which may matter to periodic events
}

// arrival is one recorded request. At is in seconds after the first request or, in a trace of arrival_s, after the experiment's
// start.
type arrival struct {
	At       float64
	Function string
	Prompt   int
	Output   int
}

// maxTraceBytes bounds the memory a trace file can claim.
const maxTraceBytes = 4 << 30

// readTrace reads a trace. Its first line tells the format: CSV of Azure's LLM inference trace (TIMESTAMP, ContextTokens,
// GeneratedTokens), of BurstGPT (Timestamp, Model, Request tokens, Response tokens) or of Medusa's logs (arrival_s,
// prompt_tokens, output_tokens; function optional), or JSON lines as in Mooncake's traces (timestamp in ms, input_length,
// output_length). A malformed file gives a [*yamlfile.Error].
func readTrace(path string) (*recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer f.Close()
	return parseTrace(path, io.LimitReader(f, maxTraceBytes))
}

// parseTrace is readTrace for an open file; name is used in errors.
func parseTrace(name string, r io.Reader) (*recording, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	head, err := br.Peek(1)
	if err != nil {
		return nil, &yamlfile.Error{File: name, Line: 1, Column: 1, Err: errors.New("read trace: empty file")}
	}
	var t *recording
	if head[0] == '{' {
		t, err = parseJSONLines(name, br)
	} else {
		t, err = parseCSV(name, br)
	}
	if err != nil {
		return nil, err
	}
	if len(t.Arrivals) == 0 {
		return nil, &yamlfile.Error{File: name, Line: 2, Column: 1, Err: errors.New("read trace: no requests")}
	}
	slices.SortStableFunc(t.Arrivals, func(a, b arrival) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	first := t.Arrivals[0].At
	if t.fromStart && first >= 0 {
		return t, nil
	}
	for i := range t.Arrivals {
		t.Arrivals[i].At -= first
	}
	return t, nil
}

// columns are the columns of a CSV trace, and the origin of its times.
type columns struct {
	at, function, prompt, output int
	fromStart                    bool
}

// csvFormats maps the names of columns, lower case, to their meaning, per format.
var csvFormats = []struct{ at, function, prompt, output string }{
	{"arrival_s", "function", "prompt_tokens", "output_tokens"},
	{"timestamp", "model", "contexttokens", "generatedtokens"},  // Azure LLM inference
	{"timestamp", "model", "request tokens", "response tokens"}, // BurstGPT
}

func findColumns(header []string) (columns, bool) {
	find := func(name string) int {
		return slices.IndexFunc(header, func(h string) bool {
			return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))) == name
		})
	}
	for i, f := range csvFormats {
		c := columns{fromStart: i == 0, at: find(f.at), function: find(f.function), prompt: find(f.prompt), output: find(f.output)}
		if c.at >= 0 && c.prompt >= 0 && c.output >= 0 {
			return c, true
		}
	}
	return columns{}, false
}

func parseCSV(name string, r io.Reader) (*recording, error) {
	cr := csv.NewReader(r)
	cr.ReuseRecord = true
	header, err := cr.Read()
	if err != nil {
		return nil, csvError(name, err)
	}
	c, ok := findColumns(header)
	if !ok {
		return nil, &yamlfile.Error{File: name, Line: 1, Column: 1, Err: errors.New("read trace: unknown columns (known: arrival_s,prompt_tokens,output_tokens; TIMESTAMP,ContextTokens,GeneratedTokens; Timestamp,Model,Request tokens,Response tokens)")}
	}
	t := &recording{fromStart: c.fromStart}
	for {
		row, err := cr.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		if len(t.Arrivals) >= maxRequests {
			return nil, &yamlfile.Error{File: name, Line: len(t.Arrivals) + 2, Column: 1, Err: fmt.Errorf("read trace: more than %d requests", maxRequests)}
		}
		fail := func(col int, err error) error {
			line, column := cr.FieldPos(col)
			return &yamlfile.Error{File: name, Line: line, Column: column, Err: fmt.Errorf("read trace: %w", err)}
		}
		var a arrival
		if a.At, err = parseTime(row[c.at]); err != nil {
			return nil, fail(c.at, err)
		}
		if a.Prompt, err = parseTokens(row[c.prompt]); err != nil {
			return nil, fail(c.prompt, err)
		}
		if a.Output, err = parseTokens(row[c.output]); err != nil {
			return nil, fail(c.output, err)
		}
		if c.function >= 0 {
			a.Function = strings.Clone(row[c.function])
		}
		t.Arrivals = append(t.Arrivals, a)
	}
}

func csvError(name string, err error) error {
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		return &yamlfile.Error{File: name, Line: pe.Line, Column: max(pe.Column, 1), Err: fmt.Errorf("read CSV: %w", pe.Err)}
	}
	if err == io.EOF {
		return &yamlfile.Error{File: name, Line: 1, Column: 1, Err: errors.New("read CSV: no header")}
	}
	return &yamlfile.Error{File: name, Line: 1, Column: 1, Err: fmt.Errorf("read CSV: %w", err)}
}

// clockLayouts are the time formats of the Azure traces of 2023 and 2024. The fraction of a second is optional in both.
var clockLayouts = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00"}

func parseTime(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		if !finite(v) || math.Abs(v) > 1e12 {
			return 0, fmt.Errorf("time %q is out of range", s)
		}
		return v, nil
	}
	for _, layout := range clockLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, nil
		}
	}
	return 0, fmt.Errorf("%q is neither seconds nor a time", s)
}

func parseTokens(s string) (int, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v != math.Trunc(v) || v < 0 || v > 1e7 {
		return 0, fmt.Errorf("%q is not a number of tokens", s)
	}
	return int(v), nil
}

// line is a request in Mooncake's format; function is an extension.
type line struct {
	Timestamp *float64 `json:"timestamp"`
	Input     *float64 `json:"input_length"`
	Output    *float64 `json:"output_length"`
	Function  string   `json:"function"`
}

func parseJSONLines(name string, r io.Reader) (*recording, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 1<<16), 1<<24)
	t := &recording{}
	n := 0
	for scanner.Scan() {
		n++
		text := scanner.Bytes()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		fail := func(column int, format string, args ...any) error {
			return &yamlfile.Error{File: name, Line: n, Column: column, Err: fmt.Errorf("read trace: "+format, args...)}
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			column := 1
			var syntax *json.SyntaxError
			var kind *json.UnmarshalTypeError
			if errors.As(err, &syntax) {
				column = int(syntax.Offset)
			} else if errors.As(err, &kind) {
				column = int(kind.Offset)
			}
			return nil, fail(max(column, 1), "%v", err)
		}
		if l.Timestamp == nil || l.Input == nil || l.Output == nil {
			return nil, fail(1, "needs timestamp, input_length and output_length")
		}
		if math.Abs(*l.Timestamp) > 1e15 {
			return nil, fail(1, "timestamp %g is out of range", *l.Timestamp)
		}
		for _, v := range []float64{*l.Input, *l.Output} {
			if v != math.Trunc(v) || v < 0 || v > 1e7 {
				return nil, fail(1, "%g is not a number of tokens", v)
			}
		}
		if len(t.Arrivals) >= maxRequests {
			return nil, fail(1, "more than %d requests", maxRequests)
		}
		t.Arrivals = append(t.Arrivals, arrival{At: *l.Timestamp / 1000, Function: l.Function, Prompt: int(*l.Input), Output: int(*l.Output)})
	}
	if err := scanner.Err(); err != nil {
		return nil, &yamlfile.Error{File: name, Line: n + 1, Column: 1, Err: fmt.Errorf("read trace: %w", err)}
	}
	return t, nil
}

// requests maps a trace to functions: by name if the trace has names of deployed functions, and otherwise in turn over all
// functions.
func (t *recording) requests(functions []Function) []request {
	index := map[string]int{}
	for i, f := range functions {
		index[f.Name] = i
	}
	names := map[string]int{}
	out := make([]request, len(t.Arrivals))
	for i, a := range t.Arrivals {
		fn, ok := index[a.Function]
		if !ok {
			// Requests with the same unknown name stay on one function.
			if fn, ok = names[a.Function]; !ok {
				fn = len(names) % len(functions)
				names[a.Function] = fn
			}
		}
		out[i] = request{arrival: a.At, fn: int32(fn), prompt: int32(a.Prompt), output: int32(max(a.Output, 1))}
	}
	return out
}

// readTable reads requests per minute: a header, then a row per function with its name in the first column.
func readTable(path string) ([][]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	defer f.Close()
	return parseTable(path, f)
}

func parseTable(name string, r io.Reader) ([][]float64, error) {
	cr := csv.NewReader(io.LimitReader(r, maxTraceBytes))
	if _, err := cr.Read(); err != nil {
		return nil, csvError(name, err)
	}
	var out [][]float64
	for {
		row, err := cr.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		rates := make([]float64, 0, len(row)-1)
		for i, cell := range row[1:] {
			v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil || !(v >= 0 && v < 1e7) {
				l, c := cr.FieldPos(i + 1)
				return nil, &yamlfile.Error{File: name, Line: l, Column: c, Err: fmt.Errorf("read table: %q is not a rate per minute", cell)}
			}
			rates = append(rates, v)
		}
		if len(rates) == 0 {
			return nil, &yamlfile.Error{File: name, Line: len(out) + 2, Column: 1, Err: errors.New("read table: a row needs rates")}
		}
		out = append(out, rates)
	}
	if len(out) == 0 {
		return nil, &yamlfile.Error{File: name, Line: 2, Column: 1, Err: errors.New("read table: no rows")}
	}
	return out, nil
}
