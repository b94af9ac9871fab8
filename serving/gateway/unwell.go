package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// unwell returns an error if an engine answers with a server error and has ended meanwhile (lives). A server in front of an engine's process, as in
// vLLM, answers so for some time after that process has died. If the engine lives, its answer stays: the error is about the request.
func unwell(r *http.Response, lives func() bool) error {
	// mutant: errors of a server whose engine has died
	if (r.StatusCode >= http.StatusInternalServerError || errorFirst(r)) && !lives() {
		return fmt.Errorf("it answered with an error (status %d) and is not healthy", r.StatusCode)
	}
	return nil
}

func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// firstBytes bounds the part of a stream that errorFirst reads. A stream is sent on after its first part.
const firstBytes = 4 << 10

// errorFirst reports whether a stream begins with an error. It puts back the bytes that it has read.
func errorFirst(r *http.Response) bool {
	if !isStream(r.Header) {
		return false
	}
	first := make([]byte, firstBytes)
	n, err := r.Body.Read(first)
	first = first[:n]
	r.Body = &putBack{first, err, r.Body}
	event := bytes.TrimLeft(first, "\r\n")
	return bytes.HasPrefix(event, []byte(`data: {"error"`))
}

// putBack is a body whose first part was read already.
type putBack struct {
	part []byte
	err  error // the error that came with the part
	io.ReadCloser
}

func (b *putBack) Read(p []byte) (int, error) {
	if len(b.part) > 0 {
		n := copy(p, b.part)
		b.part = b.part[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}
