package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// proxy stands in front of the registry and spoils its answers to requests for blobs.
type proxy struct {
	host   string
	server *httptest.Server
	drop   atomic.Int64 // bytes after which a connection is dropped; 0: never
	flip   atomic.Bool  // one bit of each blob is flipped
	digest atomic.Bool  // manifests claim another digest
	slow   atomic.Bool  // as over a network
}

func startProxy(to string) (*proxy, error) {
	p := &proxy{}
	target := &url.URL{Scheme: "http", Host: to}
	forward := &httputil.ReverseProxy{
		// Locations that the registry returns have to lead through the proxy again.
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: p.spoil,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0), // clients are killed on purpose
	}
	p.server = httptest.NewUnstartedServer(forward)
	p.server.Config.ErrorLog = forward.ErrorLog
	p.server.Start()
	p.host = strings.TrimPrefix(p.server.URL, "http://")
	return p, nil
}

func (p *proxy) stop() { p.server.Close() }

// honest ends all misbehaviour.
func (p *proxy) honest() {
	p.drop.Store(0)
	p.flip.Store(false)
	p.digest.Store(false)
	p.slow.Store(false)
}

func (p *proxy) spoil(resp *http.Response) error {
	if resp.Request.Method != http.MethodGet {
		return nil
	}
	if strings.Contains(resp.Request.URL.Path, "/manifests/") && p.digest.Load() {
		resp.Header.Set("Docker-Content-Digest", digestOf([]byte("another")))
	}
	if strings.Contains(resp.Request.URL.Path, "/blobs/") {
		resp.Body = &spoiled{ReadCloser: resp.Body, proxy: p, left: p.drop.Load(), drops: p.drop.Load() > 0}
	}
	return nil
}

// spoiled is the body of a blob.
type spoiled struct {
	io.ReadCloser
	proxy *proxy
	left  int64
	drops bool
	done  int
}

func (s *spoiled) Read(b []byte) (int, error) {
	if s.drops {
		if s.left <= 0 {
			panic(http.ErrAbortHandler)
		}
		b = b[:min(int64(len(b)), s.left)]
	}
	if s.proxy.slow.Load() {
		b = b[:min(len(b), 16<<10)]
		time.Sleep(time.Millisecond)
	}
	n, err := s.ReadCloser.Read(b)
	if n > 0 && s.done == 0 && s.proxy.flip.Load() {
		b[n/2] ^= 4
	}
	s.done += n
	s.left -= int64(n)
	return n, err
}
