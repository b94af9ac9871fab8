package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A client that says that it sends no more gets its answer: whole, streamed, and during a start. One that has left does not keep its place.
func TestHalfClose(t *testing.T) {
	starts := make(chan error)
	f := echoes(t, one, starts, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		time.Sleep(100 * time.Millisecond)
		if strings.Contains(string(body), "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		}
		_, _ = w.Write([]byte("the end"))
	})
	go func() {
		time.Sleep(300 * time.Millisecond)
		starts <- nil
	}()
	for i, body := range []string{`{"model":"a"}`, `{"model":"a","stream":true}`, `{"model":"a"}`} {
		answer := f.raw(t, post("/v1/completions", body), true)
		for strings.HasPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n") {
			answer = strings.TrimPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "the end") || i == 1 && !strings.Contains(answer, "data: 2\n\n") {
			t.Errorf("request %d: %q", i, answer)
		}
	}
	if n := f.counted("a", 200); n != 3 {
		t.Errorf("%d answers are counted", n)
	}
	// Go's own client reads interim answers over.
	c := f.dial(t)
	_, _ = io.WriteString(c, post("/v1/completions", `{"model":"a"}`))
	_ = c.(*net.TCPConn).CloseWrite()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(bufio.NewReader(c), nil)
	}
	if err != nil || response.StatusCode != 200 {
		t.Errorf("%v, %v", response, err)
	}
}

// Clients that leave are counted as such, and their requests end: while they wait for a start, for an answer, and within a stream. An operator is
// not paged for them (502). A limit that passes within a stream is a limit (504).
func TestLeaving(t *testing.T) {
	starts := make(chan error, 1)
	var working atomic.Int32
	f := echoes(t, strings.Replace(one, "name: a,", "name: a, timeout: 5,", 1), starts, func(w http.ResponseWriter, r *http.Request) {
		working.Add(1)
		defer working.Add(-1)
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: {}\n\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
			return
		}
		<-r.Context().Done()
	})
	ask := func(body string, read int) {
		c := f.dial(t)
		_, _ = io.WriteString(c, post("/v1/completions", body))
		if read > 0 {
			_, _ = io.ReadFull(c, make([]byte, read))
		} else {
			time.Sleep(50 * time.Millisecond)
		}
		_ = c.Close()
	}
	const each = 5
	for range each {
		ask(`{"model":"a"}`, 0)
	}
	soon(t, "clients that leave during a start leave the queue", func() bool { w, r := f.queue.Queued(); return w+r == 0 && f.counted("a", 499) == each })
	starts <- nil
	for range each {
		ask(`{"model":"a"}`, 0)
		ask(`{"model":"a","stream":true}`, 300)
	}
	soon(t, "requests of clients that leave end", func() bool { w, r := f.queue.Queued(); return w+r == 0 && f.counted("a", 499) == 3*each })
	soon(t, "the engine has no more work", func() bool { return working.Load() == 0 })
	answer := f.raw(t, post("/v1/completions", `{"model":"a","stream":true}`), false)
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !strings.Contains(answer, `data: {"error":{"message":"no whole answer within 5s","type":"server_error","param":null,"code":"timeout"}}`) {
		t.Errorf("a stream that takes too long ends with %q", answer[max(0, len(answer)-300):])
	}
	if f.counted("a", 504) != 1 || f.counted("a", 502) != 0 || f.counted("a", 200) != 0 {
		t.Errorf("counted: %v", f.count.answers)
	}
	if text := f.said.String(); strings.Contains(text, "failure") {
		t.Errorf("clients that leave are taken for failures of the engine: %s", text)
	}
}

// HTTP/1.0 has no way to ask a silent client. It counts as one that has left, and its connection ends without a status.
func TestLeavingHTTP10(t *testing.T) {
	f := echoes(t, one, make(chan error), mirror)
	text := "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"model\":\"a\"}"
	if answer := f.raw(t, text, true); answer != "" {
		t.Errorf("%q", answer)
	}
}
