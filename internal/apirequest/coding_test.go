package apirequest

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"medusa/internal/apierror"
)

// encoders are the codings, by their programs' own writers.
var encoders = []struct {
	name, header string
	open         func(w io.Writer) io.WriteCloser
}{
	{"gzip", "gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }},
	{"gzip of old clients", "X-GZIP", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }},
	{"zlib", "deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }},
	{"bare deflate", "deflate", func(w io.Writer) io.WriteCloser { d, _ := flate.NewWriter(w, 6); return d }},
	{"brotli", "br", func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 2) }},
	{"zstd", "Zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }},
}

func head(encoding string) http.Header { return http.Header{"Content-Encoding": {encoding}} }

func encode(open func(io.Writer) io.WriteCloser, text []byte) []byte {
	var out bytes.Buffer
	w := open(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

var plenty = Limits{Bytes: 64 << 20, Take: func(int64) error { return nil }}

// Bodies in every coding are read as they were, whole or byte by byte. A body that is cut anywhere, or followed by anything, is refused.
func TestDecode(t *testing.T) {
	random := make([]byte, 300_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = "abcdefgh{}\",: "[rng.IntN(14)]
	}
	for _, e := range encoders {
		for _, text := range [][]byte{nil, []byte(`{"model":"a"}`), random} {
			coded := encode(e.open, text)
			body, err := Decode(iotestOneByte{bytes.NewReader(coded)}, head(e.header), -1, plenty)
			if err != nil || !bytes.Equal(body, text) {
				t.Errorf("%s: %d bytes, %v; want %d", e.name, len(body), err, len(text))
			}
			wrong := [][]byte{append(bytes.Clone(coded), "x"...)}
			for at := 0; at < len(coded); at += 1 + len(coded)/50 {
				wrong = append(wrong, coded[:at])
			}
			for _, w := range wrong {
				var got *apierror.Error
				if body, err := Decode(bytes.NewReader(w), head(e.header), -1, plenty); !errors.As(err, &got) || got.Status != 400 || got.Code != "invalid_encoding" {
					t.Errorf("%s: %d of %d bytes: %d bytes, %v", e.name, len(w), len(coded), len(body), err)
				}
			}
		}
	}
	for _, other := range []string{"compress", "gzip, gzip", "gzip;q=1", "zstd,", "*", "x-", "\x00"} {
		var got *apierror.Error
		if _, err := Decode(strings.NewReader("{}"), head(other), -1, plenty); !errors.As(err, &got) || got.Status != 415 || got.Code != "unsupported_encoding" {
			t.Errorf("%q: %v", other, err)
		}
	}
	if body, err := Decode(strings.NewReader("{}"), head("identity"), 2, plenty); err != nil || string(body) != "{}" {
		t.Errorf("%q, %v", body, err)
	}
}

type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// A body of a gigabyte that comes as a megabyte or less is refused, in little memory.
func TestBombs(t *testing.T) {
	for _, e := range encoders {
		from, to := io.Pipe()
		go func() {
			w := e.open(to)
			zeros := make([]byte, 1<<20)
			for range 1 << 10 {
				if _, err := w.Write(zeros); err != nil {
					break
				}
			}
			_ = w.Close()
			_ = to.Close()
		}()
		var before, after runtime.MemStats
		taken := int64(0)
		runtime.ReadMemStats(&before)
		_, err := Decode(from, head(e.header), -1, Limits{Bytes: 512 << 20, Take: func(n int64) error { taken += n; return nil }})
		runtime.ReadMemStats(&after)
		_ = from.Close()
		var got *apierror.Error
		if !errors.As(err, &got) || got.Status != 413 {
			t.Errorf("%s: %v", e.name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 || taken > 32<<20 {
			t.Errorf("%s: %d bytes were allocated, %d asked for", e.name, used, taken)
		}
	}
}

// The limit is exact, and memory is asked for before it is used.
func TestLimits(t *testing.T) {
	for _, size := range []int64{-1, 0, 1} { // announced: unknown, right, too little
		for _, n := range []int{1, 1000, 10_000, 100_000} {
			text := bytes.Repeat([]byte("x"), n)
			announced := size
			if size == 0 {
				announced = int64(n)
			}
			taken := int64(0)
			l := Limits{Bytes: int64(n), Take: func(n int64) error { taken += n; return nil }}
			body, err := Decode(bytes.NewReader(text), nil, announced, l)
			if err != nil || !bytes.Equal(body, text) || taken < int64(cap(body)) || taken > max(2*int64(n)+2, firstPart) {
				t.Errorf("%d bytes, %d announced: %d bytes, %v; %d taken", n, announced, len(body), err, taken)
			}
			var got *apierror.Error
			if _, err := Decode(bytes.NewReader(append(text, 'x')), nil, announced, l); !errors.As(err, &got) || got.Status != 413 {
				t.Errorf("%d bytes and one more: %v", n, err)
			}
		}
	}
	full := errors.New("full")
	for _, encoding := range []string{"", "gzip", "zstd", "br"} {
		h := http.Header{}
		if encoding != "" {
			h = head(encoding)
		}
		if _, err := Decode(strings.NewReader("x"), h, -1, Limits{Bytes: 10, Take: func(int64) error { return full }}); !errors.Is(err, full) {
			t.Errorf("%q: %v", encoding, err)
		}
	}
	broken := errors.New("connection reset")
	for _, e := range encoders {
		coded := encode(e.open, []byte(strings.Repeat("text ", 1000)))
		if _, err := Decode(io.MultiReader(bytes.NewReader(coded[:len(coded)/2]), failing{broken}), head(e.header), -1, plenty); !errors.Is(err, broken) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Damaged bodies are refused or read, without a panic, in bounded memory.
func FuzzDecode(f *testing.F) {
	for i, e := range encoders {
		f.Add(byte(i), encode(e.open, []byte(`{"model":"a","prompt":"`+strings.Repeat("hello ", 40)+`"}`)))
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		e := encoders[int(which)%len(encoders)]
		taken := int64(0)
		body, err := Decode(bytes.NewReader(data), head(e.header), int64(len(data)), Limits{Bytes: 8 << 20, Take: func(n int64) error {
			if taken += n; taken > 64<<20 {
				return fmt.Errorf("%d bytes", taken)
			}
			return nil
		}})
		var got *apierror.Error
		if err != nil && !errors.As(err, &got) {
			t.Fatal(err)
		}
		if err == nil {
			_, _ = readObject(body)
			_, _ = readForm("b", body)
		}
	})
}
