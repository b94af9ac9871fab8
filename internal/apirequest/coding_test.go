package apirequest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"medusa/internal/apierror"
	"medusa/internal/httplimit"
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

// decode decodes a body into at most so many bytes.
func decode(encoding string, coded []byte, most int64) ([]byte, error) {
	to := httplimit.NewBodies(1 << 30).New(most)
	_, err := Decode(head(encoding), coded, to)
	return to.Bytes(), err
}

const plenty = 512 << 20

// Bodies in every coding are read as they were. A body that is cut anywhere, or followed by anything, is refused.
func TestDecode(t *testing.T) {
	random := make([]byte, 300_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = "abcdefgh{}\",: "[rng.IntN(14)]
	}
	for _, e := range encoders {
		for _, text := range [][]byte{nil, []byte(`{"model":"a"}`), random} {
			coded := encode(e.open, text)
			body, err := decode(e.header, coded, plenty)
			if err != nil || !bytes.Equal(body, text) {
				t.Errorf("%s: %d bytes, %v; want %d", e.name, len(body), err, len(text))
			}
			wrong := [][]byte{append(bytes.Clone(coded), "x"...)}
			for at := 0; at < len(coded); at += 1 + len(coded)/50 {
				wrong = append(wrong, coded[:at])
			}
			for _, w := range wrong {
				var got *apierror.Error
				if body, err := decode(e.header, w, plenty); !errors.As(err, &got) || got.Status != 400 || got.Code != "invalid_encoding" {
					t.Errorf("%s: %d of %d bytes: %d bytes, %v", e.name, len(w), len(coded), len(body), err)
				}
			}
		}
	}
	for _, other := range []string{"compress", "gzip, gzip", "gzip;q=1", "zstd,", "*", "x-", "\x00"} {
		var got *apierror.Error
		if _, err := decode(other, []byte("{}"), plenty); !errors.As(err, &got) || got.Status != 415 || got.Code != "unsupported_encoding" {
			t.Errorf("%q: %v", other, err)
		}
	}
	if coded, err := Decode(head("identity"), []byte("{}"), nil); err != nil || coded {
		t.Errorf("identity: %t, %v", coded, err)
	}
}

// A body that grows a thousand times is refused, in little memory, by its growth or by the limit.
func TestBombs(t *testing.T) {
	for _, e := range encoders {
		var bomb bytes.Buffer
		w := e.open(&bomb)
		for zeros, i := make([]byte, 1<<20), 0; i < 128; i++ {
			_, _ = w.Write(zeros)
		}
		_ = w.Close()
		for _, most := range []int64{100 << 20, 16 << 20} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode(e.header, bomb.Bytes(), most)
			runtime.ReadMemStats(&after)
			var got *apierror.Error
			var large *http.MaxBytesError
			if !(errors.As(err, &got) && got.Status == 413) && !errors.As(err, &large) {
				t.Errorf("%s: %v", e.name, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 96<<20 { // a body is copied as it grows
				t.Errorf("%s: %d bytes, at most %d: %d were allocated", e.name, bomb.Len(), most, used)
			}
		}
	}
}

// Damaged bodies are refused or read, without a panic, in bounded memory.
func FuzzDecode(f *testing.F) {
	for i, e := range encoders {
		f.Add(byte(i), encode(e.open, []byte(`{"model":"a","prompt":"`+strings.Repeat("hello ", 40)+`"}`)))
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		e := encoders[int(which)%len(encoders)]
		body, err := decode(e.header, data, 8<<20)
		var large *http.MaxBytesError
		var got *apierror.Error
		if err != nil && !errors.As(err, &got) && !errors.As(err, &large) {
			t.Fatal(err)
		}
		if err == nil {
			_, _ = readObject(body)
			_, _ = readForm("b", body)
		}
	})
}
