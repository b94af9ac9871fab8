package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const signing = one + "sign_after: 0.1\nsign_every: 0.05\n"

// twoEvents answers with two events.
func twoEvents(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Refuse") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "{\n \"error\": {\"message\": \"too long\"}}")
		return
	}
	if r.Header.Get("X-Whole") != "" {
		_, _ = io.WriteString(w, "{}")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	fmt.Fprint(w, "data: 1\n\n")
	_ = http.NewResponseController(w).Flush()
	fmt.Fprint(w, "data: 2\n\n")
}

// split divides a stream into signs of life and the rest. A sign is one line, with no empty line after it.
func split(t *testing.T, text string) (signs []string, rest string) {
	t.Helper()
	for {
		line, after, ok := strings.Cut(text, "\n")
		if !ok || !strings.HasPrefix(line, ":") {
			return signs, text
		}
		signs, text = append(signs, line), after
	}
}

// streamed asks for a stream. After its first sign of life it calls then, and returns the whole answer.
func (f *port) streamed(t *testing.T, path, header string, then func()) (status int, text string, head http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.at+path, strings.NewReader(`{"model":"a","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(header, "1")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	then()
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, first + string(rest), response.Header
}

// A stream that waits for a start gets its head and comments, and then the engine's answer as it is. One that is not asked for as a stream gets
// nothing before.
func TestSigns(t *testing.T) {
	starts := make(chan error)
	f := echoes(t, signing, starts, twoEvents)
	whole := make(chan string)
	status, text, head := f.streamed(t, "/v1/completions", "X-None", func() {
		go func() {
			_, text, _ := f.do(t, "POST", "/v1/completions", `{"model":"a"}`)
			whole <- text
		}()
		soon(t, "both wait", func() bool { w, r := f.queue.Queued(); return w+r == 2 })
		starts <- nil
	})
	if text := <-whole; text != "data: 1\n\ndata: 2\n\n" {
		t.Errorf("%q", text)
	}
	signs, rest := split(t, text)
	if status != 200 || head.Get("Content-Type") != "text/event-stream" || head.Get("X-Request-Id") == "" || rest != "data: 1\n\ndata: 2\n\n" || len(signs) == 0 {
		t.Fatalf("%d %v: %q", status, head, text)
	}
	if !strings.HasPrefix(signs[0], ": a is starting, about ") || !strings.HasSuffix(signs[0], " s left") {
		t.Errorf("signs %q", signs)
	}
	// A warm engine answers with its own status and head.
	if status, text, head := f.do(t, "POST", "/v1/completions", `{"model":"a","stream":true}`); status != 200 || text != "data: 1\n\ndata: 2\n\n" || head.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("%d %q %v", status, text, head)
	}
	if status, text, _ := f.do(t, "POST", "/v1/completions", `{"model":"a","stream":true}`, "X-Refuse", "1"); status != 400 || !strings.Contains(text, "too long") {
		t.Errorf("%d %q", status, text)
	}
}

// After signs of life a status can not be sent any more. A start that fails, and an engine that refuses, end the stream with an error in the form of
// the API.
func TestSignsBeforeErrors(t *testing.T) {
	for _, row := range []struct{ path, refused, failed string }{
		{"/v1/chat/completions", `data: {"error":{"message":"too long"}}`, `data: {"error":{"message":"run engine of a on GPU 0: failure `},
		{"/v1/responses", "event: error\n" + `data: {"error":{"message":"too long"}}`, "event: error\n" + `data: {"type":"error","code":"engine_failed","message":"run engine of a on GPU 0: failure `},
		{"/v1/messages", "event: error\n" + `data: {"error":{"message":"too long"}}`, "event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"run engine of a on GPU 0: failure `},
	} {
		for _, header := range []string{"X-Refuse", "X-Whole", "X-Fail"} {
			starts := make(chan error)
			f := echoes(t, signing, starts, twoEvents)
			status, text, _ := f.streamed(t, row.path, header, func() {
				if header != "X-Fail" {
					starts <- nil
					return
				}
				starts <- errors.New("out of memory")
				starts <- errors.New("out of memory") // it is tried twice
			})
			_, rest := split(t, text)
			want, counted := row.refused, 400
			switch header {
			case "X-Fail":
				want, counted = row.failed, 502
			case "X-Whole":
				want, counted = "no stream", 200
			}
			if status != 200 || !strings.Contains(rest, want) || header != "X-Whole" && !strings.HasPrefix(rest, want) || !strings.HasSuffix(rest, "}\n\n") || f.counted("a", counted) != 1 {
				t.Errorf("%s %s: %d, %q; counted %v", row.path, header, status, text, f.count.answers)
			}
		}
	}
}

// A stream that breaks off within an event ends that event first. One that breaks off between events gets no empty one: some clients take an empty
// line for an event.
func TestBreakOff(t *testing.T) {
	f := echoes(t, one, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, map[string]string{"whole": "data: 1\n\n", "part": "data: 1\ndata: 2", "CRLF": "data: 1\r\n\r\n"}[r.Header.Get("X-Say")])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for say, want := range map[string]string{"whole": "data: 1\n\ndata: {", "part": "data: 1\ndata: 2\n\ndata: {", "CRLF": "data: 1\r\n\r\ndata: {"} {
		if _, text, _ := f.do(t, "POST", "/v1/completions", `{"model":"a","stream":true}`, "X-Say", say); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", say, text, want)
		}
	}
}

// Where a start failed and is not tried again yet, the client is told when it will be.
func TestRetryAfter(t *testing.T) {
	starts := make(chan error, 1)
	starts <- errors.New("out of memory")
	f := echoes(t, strings.Replace(one, "retry: 0", "retry: 30", 1), starts, mirror)
	status, text, head := f.do(t, "POST", "/v1/completions", `{"model":"a"}`)
	if status != 502 || !strings.Contains(text, "engine_failed") || head.Get("Retry-After") != "30" && head.Get("Retry-After") != "29" {
		t.Errorf("%d %s %v", status, text, head)
	}
}
