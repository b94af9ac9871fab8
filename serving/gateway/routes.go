package gateway

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
)

// Handler returns the endpoints.
func (g *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", g.allowed(apierror.OpenAI, g.metrics))
	mux.HandleFunc("GET /{$}", g.watched(page))
	mux.HandleFunc("GET /events", g.watched(g.events))
	mux.HandleFunc("GET /v1/models", g.allowed(apierror.OpenAI, g.models))
	mux.HandleFunc("GET /v1/models/{name...}", g.allowed(apierror.OpenAI, g.oneModel))
	mux.HandleFunc("GET /running", g.allowed(apierror.OpenAI, g.running))
	mux.HandleFunc("POST /models/{rest...}", g.allowed(apierror.OpenAI, g.unload))
	for _, e := range apirequest.Endpoints() {
		mux.HandleFunc(e.Method+" "+e.Path, g.allowed(e.Errors, func(w http.ResponseWriter, r *http.Request) { g.answer(w, r, e) }))
	}
	mux.HandleFunc("/", g.allowed(apierror.OpenAI, unknownURL))
	return g.visited(g.guarded(mux))
}

func unknownURL(w http.ResponseWriter, r *http.Request) {
	decline(w, r, apierror.OpenAI, &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "unknown_url",
		Message: fmt.Sprintf("no endpoint %s %s", r.Method, r.URL.Path)})
}

// allowed passes on requests with a known key, if they are no upgrades.
func (g *Server) allowed(form apierror.Form, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !g.known(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			decline(w, r, form, errKey)
			return
		}
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			decline(w, r, form, &apierror.Error{Status: http.StatusNotImplemented, Kind: apierror.Request, Code: "websocket_unsupported", Param: "Upgrade",
				Message: "WebSocket connections are not passed on; use HTTP"})
			return
		}
		next(w, r)
	}
}

var errKey = &apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_api_key", Message: "the API key is missing or unknown"}

// known reports whether a request has a known key, in OpenAI's header or in Anthropic's.
func (g *Server) known(r *http.Request) bool {
	scheme, given, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	// mutant: the scheme of keys
	if !strings.EqualFold(scheme, "Bearer") {
		given = r.Header.Get("X-Api-Key")
	}
	return g.isKey(strings.TrimSpace(given))
}

func (g *Server) isKey(given string) bool {
	keys := g.setup.Load().keys
	if keys == nil {
		return true
	}
	found := 0
	for key := range keys {
		// mutant: API keys
		found |= subtle.ConstantTimeCompare([]byte(given), []byte(key))
	}
	return found == 1
}
