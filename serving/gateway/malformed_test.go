package gateway

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packers are the codings that clients use.
var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 1); return z },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 1) },
	"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z },
}

func pack(encoding string, text []byte) []byte {
	var out bytes.Buffer
	w := packers[encoding](&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

// Thousands of damaged bodies, coded and not, are answered in OpenAI's form or by the engine, in bounded memory, and no room is lost.
func TestMalformedBodies(t *testing.T) {
	f := echoes(t, one+"max_body: 2000000\nmax_bodies: 8000000\n", nil, mirror)
	bodies, clients := 10_000, 8
	if testing.Short() {
		bodies = 1000
	}
	var bombs [][2]string
	for encoding := range packers {
		bombs = append(bombs, [2]string{encoding, string(pack(encoding, make([]byte, 16<<20)))})
	}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for c := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 7))
			for range bodies / clients {
				encoding, body := malformed(rng, bombs)
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.at+"/v1/completions", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				if encoding != "" {
					r.Header.Set("Content-Encoding", encoding)
				}
				response, err := transport.RoundTrip(r)
				if err != nil {
					t.Errorf("%s %.80q: %v", encoding, body, err)
					return
				}
				text, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || response.StatusCode != 200 && (response.StatusCode < 400 || response.StatusCode > 415) && response.StatusCode != 503 || response.StatusCode != 200 && !bytes.HasPrefix(text, []byte(`{"error":{"message":"`)) {
					t.Errorf("%s %.80q: %d %.100q, %v", encoding, body, response.StatusCode, text, err)
				}
				mu.Lock()
				got[response.StatusCode]++
				mu.Unlock()
			}
		})
	}
	most := uint64(0)
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	for looking := true; looking; {
		select {
		case <-over:
			looking = false
		case <-time.After(50 * time.Millisecond):
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}
	t.Logf("statuses %v, at most %d MB of heap, clients and engine included", got, most>>20)
	if got[200] == 0 || got[400] == 0 || got[413] == 0 || got[415] == 0 {
		t.Errorf("statuses %v: this shows little", got)
	}
	if most > 200<<20 {
		t.Errorf("%d bytes of heap", most)
	}
	soon(t, "no room is lost", func() bool { return f.bodies.Used() == 0 })
	if strings.Contains(f.said.String(), "panic") {
		t.Error(f.said.String())
	}
}

// malformed damages a request for a model.
func malformed(rng *rand.Rand, bombs [][2]string) (encoding, body string) {
	text := []byte(`{"model":"a","prompt":"` + strings.Repeat("word ", rng.IntN(200)) + `","stream":false,"n":1.5e3,"stop":[null,"\u00e9"]}`)
	for range rng.IntN(4) {
		at := rng.IntN(len(text))
		switch rng.IntN(3) {
		case 0:
			text[at] = byte(rng.IntN(256))
		case 1:
			text = append(text[:at], text[min(len(text), at+1+rng.IntN(9)):]...)
		case 2:
			text = append(text[:at:at], append([]byte(`,"model":"b"`), text[at:]...)...)
		}
		if len(text) == 0 {
			text = []byte("[]")
		}
	}
	switch rng.IntN(8) {
	case 0:
		return "", string(text)
	case 1:
		bomb := bombs[rng.IntN(len(bombs))]
		return bomb[0], bomb[1]
	case 2:
		return []string{"compress", "gzip, br", "x", "snappy"}[rng.IntN(4)], string(text)
	}
	encoding = []string{"gzip", "deflate", "br", "zstd"}[rng.IntN(4)]
	coded := pack(encoding, text)
	switch rng.IntN(3) {
	case 0:
		coded = coded[:rng.IntN(len(coded))]
	case 1:
		coded[rng.IntN(len(coded))] ^= byte(1 << rng.IntN(8))
	}
	return encoding, string(coded)
}

// All bodies together have a bound. A request that finds no room is told to come again, and others are answered once there is room.
func TestBodiesTogether(t *testing.T) {
	f := echoes(t, one+"max_body: 1000000\nmax_bodies: 1500000\n", nil, mirror)
	slow := f.dial(t)
	_, _ = fmt.Fprintf(slow, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"model\":\"a\",\"x\":\"%s", strings.Repeat("x", 900_000))
	soon(t, "most of the room is taken", func() bool { return f.bodies.Used() > 900_000 })
	large := `{"model":"a","x":"` + strings.Repeat("x", 900_000) + `"}`
	if status, text, head := f.do(t, "POST", "/v1/completions", large); status != 503 || !strings.Contains(text, `"code":"busy"`) || head.Get("Retry-After") == "" {
		t.Errorf("%d %.200s %v", status, text, head)
	}
	if status, text, _ := f.do(t, "POST", "/v1/completions", `{"model":"a"}`); status != 200 {
		t.Errorf("a small request beside it: %d %s", status, text)
	}
	_ = slow.Close()
	soon(t, "the room is free", func() bool { return f.bodies.Used() == 0 })
	if status, text, _ := f.do(t, "POST", "/v1/completions", large); status != 200 {
		t.Errorf("%d %.200s", status, text)
	}
}
