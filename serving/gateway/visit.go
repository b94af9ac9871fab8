package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// headerID names a request, for logs here, at the engine and at the client.
const headerID = "X-Request-Id"

// maxID bounds the name of a request in bytes.
const maxID = 128

// visit is a request, and what the access log says of it.
type visit struct {
	http.ResponseWriter `json:"-"`

	ID       string  `json:"id"`
	Time     string  `json:"time"` // of its end
	Client   string  `json:"client"`
	Method   string  `json:"method"`
	Path     string  `json:"path"`
	Protocol string  `json:"protocol"`
	Model    string  `json:"model,omitempty"`
	Stream   bool    `json:"stream,omitempty"`
	Status   int     `json:"status"` // as medusa_serve_requests_total counts it
	In       int64   `json:"bytes_in"`
	Out      int64   `json:"bytes_out"`
	Waited   float64 `json:"waited_s,omitempty"` // until an engine got it
	Took     float64 `json:"seconds"`
	Parent   string  `json:"traceparent,omitempty"`
	begun    bool
}

func (v *visit) WriteHeader(status int) {
	if status >= http.StatusOK && !v.begun {
		v.begun = true
		if v.Status == 0 {
			v.Status = status
		}
	}
	v.ResponseWriter.WriteHeader(status)
}

func (v *visit) Write(b []byte) (int, error) {
	if !v.begun {
		v.WriteHeader(http.StatusOK)
	}
	n, err := v.ResponseWriter.Write(b)
	v.Out += int64(n)
	return n, err
}

// Unwrap lets the server's controller flush.
func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

type visitKey struct{}

// visiting returns the visit of a request.
func visiting(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	if v == nil {
		return &visit{}
	}
	return v
}

// visited gives each request a name, and writes its end to the access log.
func (g *Server) visited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get(headerID)
		if !isID(id) {
			id = rand.Text()
		}
		r.Header.Set(headerID, id)
		w.Header().Set(headerID, id)
		v := &visit{ResponseWriter: w, ID: id, Client: r.RemoteAddr, Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, Parent: r.Header.Get("Traceparent")}
		defer func() {
			v.Time, v.Took = time.Now().UTC().Format(time.RFC3339Nano), time.Since(began).Seconds()
			g.access.write(v)
		}()
		next.ServeHTTP(v, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
	})
}

// isID reports whether a text can be a name: printable characters of ASCII without spaces.
func isID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// access is the access log.
type access struct {
	mu   sync.Mutex
	file *os.File // nil: none
	lost bool     // the last line was not written
	warn func(format string, args ...any)
}

// openAccess opens the file of an access log; nil if it has none.
func openAccess(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open access log: %w", err)
	}
	return f, nil
}

// use goes on in a file, which may be of the same name after the one before was renamed. nil ends the log.
func (a *access) use(f *os.File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		_ = a.file.Close() // each line was written by itself
	}
	a.file = f
}

func (a *access) write(v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return
	}
	data, err := json.Marshal(v)
	if err == nil {
		_, err = a.file.Write(append(data, '\n'))
	}
	if err != nil && !a.lost {
		a.warn("write access log: %v (requests are answered; the next lines are tried)", err)
	}
	a.lost = err != nil
}
