package gateway

import (
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"medusa/internal/apierror"
)

//go:embed page.html
var pageText string

// pagePolicy lets the page run only its own script and ask only its own server.
var pagePolicy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	digestOf("style"), digestOf("script"))

// digestOf is the hash, in the form of browsers, of the page's only element of a kind.
func digestOf(element string) string {
	_, after, _ := strings.Cut(pageText, "<"+element+">")
	text, _, _ := strings.Cut(after, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// watched passes on requests with a known key. It also accepts the form that browsers ask for: the key as the password of any user.
// Browsers send that form by themselves, so endpoints that do work must not accept it.
func (g *Server) watched(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if !g.known(r) && !g.isKey(password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="medusa: an API key as password", charset="UTF-8"`)
			errKey.Write(w)
			return
		}
		next(w, r)
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(pageText))
}

const (
	reportEvery = 500 * time.Millisecond
	// The server notices a lost connection only when it writes to it.
	silence = 15 * time.Second
	// maxWatchers bounds the number of pages that are open at a time.
	maxWatchers = 32
)

// update is an event: the newest report, and the changes since the event before it.
type update struct {
	*Report
	Changes []Change `json:"changes"`
}

// events sends a report at each change, as server-sent events. The id of an event is the number of the last change in it.
func (g *Server) events(w http.ResponseWriter, r *http.Request) {
	// mutant: pages that are open
	if g.watchers.Add(1) > maxWatchers {
		g.watchers.Add(-1)
		(&apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "too_many_pages", Message: fmt.Sprintf("%d pages are open", maxWatchers), Retry: 10}).Write(w)
		return
	}
	defer g.watchers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	seen, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if seen > g.history.last() { // the number comes from a server before this one
		seen = 0
	}
	last, written := "", time.Time{}
	look := time.NewTicker(reportEvery)
	defer look.Stop()
	for {
		changes := g.history.since(seen)
		report := g.report()
		state := report.state()
		if state != last || len(changes) > 0 || time.Since(written) > silence {
			if n := len(changes); n > 0 {
				seen = changes[n-1].Number
			}
			data, _ := json.Marshal(update{report, changes})
			_ = out.SetWriteDeadline(time.Now().Add(silence)) // only a test's writer has none
			if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", seen, data); err != nil || out.Flush() != nil {
				return
			}
			last, written = state, time.Now()
		}
		select {
		case <-look.C:
		case <-r.Context().Done():
			return
		case <-g.over:
			return
		}
	}
}

// state is the report without its time.
func (r *Report) state() string {
	same := *r
	same.Time = 0
	data, _ := json.Marshal(same)
	return string(data)
}
