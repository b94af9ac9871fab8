package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"medusa/internal/apierror"
)

// anyOrigin allows pages of all sites.
const anyOrigin = "*"

// guarded refuses what pages of foreign sites make a browser send, and lets those in that the file names.
func (g *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := g.setup.Load()
		if err := now.foreign(r); err != nil {
			decline(w, r, apierror.OpenAI, err)
			return
		}
		origin := r.Header.Get("Origin")
		named := origin != "" && (slices.Contains(now.spec.CORS, origin) || slices.Contains(now.spec.CORS, anyOrigin))
		if len(now.spec.CORS) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if named {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Expose-Headers", headerID+", Retry-After")
		}
		// A browser asks with OPTIONS, and without a key, whether it may send the request.
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && named {
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
			w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			w.Header().Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign returns an error for a request that a page of a foreign site may have caused.
func (u *setup) foreign(r *http.Request) error {
	// A name that a foreign site lets point to this machine makes its page one of ours, for the browser.
	// mutant: foreign hosts
	if u.loopback && !isLoopback(r.Host) && !slices.Contains(u.spec.Hosts, hostOf(r.Host)) {
		return &apierror.Error{Status: http.StatusForbidden, Kind: apierror.Request, Code: "foreign_host", Param: "Host",
			Message: fmt.Sprintf("the host %q is not this machine (setting hosts)", r.Host)}
	}
	if slices.Contains(u.spec.CORS, anyOrigin) {
		return nil
	}
	// mutant: pages of other sites
	if err := u.origins.Check(r); err != nil {
		return &apierror.Error{Status: http.StatusForbidden, Kind: apierror.Request, Code: "cross_origin", Param: "Origin",
			Message: fmt.Sprintf("a page of another site has sent this request: %v (setting cors)", err)}
	}
	return nil
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = host
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

// isLoopback reports whether a host can only be the machine of its client. A client of HTTP/1.0 may name none.
func isLoopback(hostport string) bool {
	host := strings.TrimSuffix(hostOf(hostport), ".")
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

// origins has the sites whose pages may send requests.
func origins(allowed []string) (*http.CrossOriginProtection, error) {
	p := http.NewCrossOriginProtection()
	for _, origin := range allowed {
		if origin == anyOrigin {
			continue
		}
		if err := p.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return p, nil
}
