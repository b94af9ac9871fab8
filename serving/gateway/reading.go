package gateway

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
	"medusa/internal/httplimit"
)

// The time that a body may take: some seconds, and more for each byte.
const (
	bodyGrace = 30 * time.Second
	bodyRate  = 32 << 10 // bytes a second
)

// The bounds of a body that was refused and is read to its end nevertheless.
const (
	drainBytes = 1 << 30
	drainTime  = 30 * time.Second
)

// arriving is the body of a request, with a deadline that moves on as bytes come.
type arriving struct {
	from  io.Reader
	out   *http.ResponseController
	began time.Time
	n     int64
	until time.Time
}

func (a *arriving) Read(p []byte) (int, error) {
	const step = time.Second // deadlines cost time
	if until := a.began.Add(bodyGrace + time.Duration(a.n)*(time.Second/bodyRate)); until.Sub(a.until) > step {
		a.until = until
		_ = a.out.SetReadDeadline(until) // only a test's writer has none
	}
	n, err := a.from.Read(p)
	a.n += int64(n)
	return n, err
}

// read reads the body of a request, and decodes it. The caller releases it.
func read(w http.ResponseWriter, r *http.Request, all *httplimit.Bodies, most int64) (*httplimit.Body, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	out := http.NewResponseController(w)
	body := all.New(most)
	if _, err := body.ReadFrom(&arriving{from: r.Body, out: out, began: time.Now()}); err != nil {
		body.Release()
		return nil, cmp.Or(incomplete(err), err)
	}
	_ = out.SetReadDeadline(time.Time{})
	decoded := all.New(most)
	is, err := apirequest.Decode(r.Header, body.Bytes(), decoded)
	if !is && err == nil {
		return body, nil
	}
	body.Release()
	if err != nil {
		decoded.Release()
		return nil, err
	}
	return decoded, nil
}

// incomplete is the error of a body that has not come to its end; nil for another error.
func incomplete(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large), errors.Is(err, httplimit.ErrFull):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apierror.Error{Status: http.StatusRequestTimeout, Kind: apierror.Request, Code: "timeout", Message: "the body did not come in time"}
	}
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Message: "read body: " + err.Error()}
}

// decline answers a request that goes to no engine. It reads the rest of the body first: many clients read no answer before they have sent all.
func decline(w http.ResponseWriter, r *http.Request, form apierror.Form, err error) {
	e := classify(err)
	expected := r.Header.Get("Expect") != "" // such a client sends its body only if the server reads
	if e.Status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close") // the rest does not come
	} else if !expected && r.ContentLength <= drainBytes {
		out := http.NewResponseController(w)
		_ = out.SetReadDeadline(time.Now().Add(drainTime))
		// mutant: bodies that are refused
		_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
	}
	if e.Param == "Content-Encoding" && e.Status == http.StatusUnsupportedMediaType {
		w.Header().Set("Accept-Encoding", apirequest.Codings())
	}
	e.WriteAs(w, form)
}
