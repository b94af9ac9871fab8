package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// silence is the time without a byte after which a connection is closed.
const silence = 30 * time.Second

// Client talks to registries. The zero value is ready for use.
type Client struct {
	PlainHTTP bool   // also to registries that are not on the loopback interface
	CAFile    string // PEM file with authorities that are trusted besides the system's; empty: none
	// Progress receives the progress of the current transfer in bytes; may be nil.
	Progress func(done, total int64)
}

func (c *Client) progress(done, total int64) {
	if c.Progress != nil {
		c.Progress(done, total)
	}
}

// repository opens a reference's repository with the credentials of the docker configuration. It uses plain HTTP for registries
// on the loopback interface, and HTTPS for all others unless PlainHTTP is set.
func (c *Client) repository(ref string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(ref)
	if err != nil {
		return nil, fmt.Errorf("read reference %q: %w (want REGISTRY/REPOSITORY:TAG or ...@sha256:DIGEST)", ref, err)
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read docker configuration: %w", err)
	}
	roots, err := c.authorities()
	if err != nil {
		return nil, err
	}
	// mutant: plain HTTP only for loopback
	repo.PlainHTTP = loopback(repo.Reference.Host()) && c.CAFile == "" || c.PlainHTTP
	repo.Client = &auth.Client{
		Client:     &http.Client{Transport: transport(roots), CheckRedirect: c.checkRedirect},
		Cache:      auth.NewCache(),
		Credential: credentials.Credential(store),
		Header:     http.Header{"User-Agent": {"medusa"}},
	}
	repo.MaxMetadataBytes = maxManifest
	repo.ReferrerListMaxPages = 16
	repo.SkipReferrersGC = true // most registries forbid deletion
	return repo, nil
}

// loopback says whether host, with or without port, is localhost or a loopback address.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkRedirect lets a registry redirect to a blob store, but not from HTTPS to HTTP.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	// mutant: redirects stay encrypted
	if req.URL.Scheme != "https" && !(loopback(req.URL.Host) && loopback(via[0].URL.Host)) && !(c.PlainHTTP && via[0].URL.Scheme == "http") {
		return fmt.Errorf("redirect to %s is not encrypted", (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}).String())
	}
	return nil
}

// authorities returns the system's, with those of CAFile; nil: the system's.
func (c *Client) authorities() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities: %s has no certificate (PEM)", c.CAFile)
	}
	return roots, nil
}

func transport(roots *x509.CertPool) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if roots != nil {
		base.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	base.ResponseHeaderTimeout = silence
	return &retry.Transport{Base: &impatient{base}, Policy: func() retry.Policy {
		return &retry.GenericPolicy{Retryable: retryable, Backoff: retry.ExponentialBackoff(2*firstPause, 2, 0.1), MinWait: firstPause,
			MaxWait: 5 * time.Second, MaxRetry: 4}
	}}
}

func retryable(resp *http.Response, err error) (bool, error) {
	if err != nil {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded), nil
	}
	return resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, nil
}

// impatient closes response bodies that stop sending: net/http has no timeout for that.
type impatient struct{ base http.RoundTripper }

func (t *impatient) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &impatientBody{ReadCloser: resp.Body, cancel: cancel}
	body.timer = time.AfterFunc(silence, func() { cancel(fmt.Errorf("no byte arrived for %s", silence)) })
	resp.Body = body
	return resp, nil
}

type impatientBody struct {
	io.ReadCloser
	timer  *time.Timer
	cancel context.CancelCauseFunc
	once   sync.Once
}

func (b *impatientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.timer.Reset(silence)
	if err != nil {
		b.timer.Stop()
	}
	return n, err
}

func (b *impatientBody) Close() error {
	b.once.Do(func() {
		b.timer.Stop()
		b.cancel(nil)
	})
	return b.ReadCloser.Close()
}

// fetchAll reads small content into memory and checks it.
func fetchAll(ctx context.Context, from content.Fetcher, d ocispec.Descriptor, limit int64) ([]byte, error) {
	if err := checkDescriptor(d); err != nil {
		return nil, err
	}
	if d.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes (at most %d)", d.Digest, d.Size, limit)
	}
	return content.FetchAll(ctx, from, d)
}
