package starts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"medusa/restore/status"
)

// served is the result of a server's start.
type served struct {
	moments []status.Phase
	err     error
}

// Between looks at a server.
const between = 20 * time.Millisecond

// serve waits until the server listens, is healthy, and has answered the request if there is one. It returns false if the context ends before.
func (o *Options) serve(ctx context.Context, began time.Time) (s served, ok bool) {
	moment := func(name string) {
		s.moments = append(s.moments, status.Phase{Name: name, Began: time.Since(began).Seconds()})
	}
	address, err := url.Parse(o.Health)
	if err != nil {
		return served{err: err}, true
	}
	place := net.JoinHostPort(address.Hostname(), cmp.Or(address.Port(), address.Scheme))
	if !until(ctx, func() bool { return listens(ctx, place) }) {
		return s, false
	}
	moment("listening")
	if !until(ctx, func() bool { return ask(ctx, http.MethodGet, o.Health, "") == nil }) {
		return s, false
	}
	moment("healthy")
	if o.Request == "" {
		return s, true
	}
	if err := ask(ctx, http.MethodPost, o.Request, o.Body); err != nil {
		if ctx.Err() != nil {
			return s, false
		}
		return served{err: fmt.Errorf("first request: %w", err)}, true
	}
	moment("answered")
	return s, true
}

func until(ctx context.Context, is func() bool) bool {
	for ctx.Err() == nil {
		if is() {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(between):
		}
	}
	return false
}

func listens(ctx context.Context, place string) bool {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", place)
	return err == nil && c.Close() == nil
}

// longestAnswer bounds the part of an answer that is read for an error's text.
const longestAnswer = 1024

// ask fails if the answer is not 200. It reads all of it.
func ask(ctx context.Context, method, address, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req) // which follows no redirects
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status + ": " + string(text))
	}
	return err
}
