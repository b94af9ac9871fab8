package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"medusa/test/stubengine"
)

// holding makes more requests wait than Envoy's and Go's defaults allow, while stub engines start. All are answered.
func (r *run) holding() (string, error) {
	s, err := r.newSystem()
	if err != nil {
		return "", err
	}
	stub := func(m int) ([]string, string) {
		return []string{filepath.Join(r.build, "stub-engine"), "--listen", "127.0.0.1:{port}", "--model", "{name}", "--load", r.hold.String()},
			"memory: 1, slots: 64"
	}
	for i := range s.GPUs {
		if err := s.agent(i, 1, stub); err != nil {
			return "", err
		}
	}
	if _, err := s.pick("{name: mqfq, d: 64}", 0, r.held, 1); err != nil {
		return "", err
	}
	if err := s.proxy(); err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: r.held, DialContext: (&net.Dialer{}).DialContext}}
	var wg sync.WaitGroup
	var refused atomic.Int32
	errs := make(chan error, r.held)
	most := 0
	began := time.Now()
	for i := range r.held {
		wg.Go(func() {
			if err := post(client, s.url(), fmt.Sprintf(`{"model": "m0", "prompt": "%d"}`, i)); err != nil {
				errs <- err
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(200 * time.Millisecond):
			n, err := s.waiting()
			if err != nil {
				return "", err
			}
			if most = max(most, n); n == r.held-3*64 && refused.Load() == 0 {
				// One request more than may wait is refused at once, with a time to come again.
				if err := s.overfull(client, r.held-n); err != nil {
					return "", err
				}
				refused.Add(1)
			}
		}
	}
	close(errs)
	if err := <-errs; err != nil {
		return "", fmt.Errorf("%w (and %d others)\n%s", err, len(errs), s.picker.output())
	}
	if took := time.Since(began); took < r.hold {
		return "", fmt.Errorf("the requests were held for %v only", took)
	}
	if err := s.empty(); err != nil {
		return "", err
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	if refused.Load() == 0 {
		return "", fmt.Errorf("at most %d of %d requests waited at once", most, r.held)
	}
	return fmt.Sprintf("held=%d for=%v answered=%d", r.held, r.hold, r.held), nil
}

// overfull fills up the queue, and demands that the next request is refused.
func (s *system) overfull(client *http.Client, left int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range left {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url()+"/v1/completions", strings.NewReader(`{"model": "m0", "prompt": "more"}`))
		if err != nil {
			return err
		}
		go func() {
			if response, err := client.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}()
	}
	var status *stubengine.StatusError
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if n, err := s.waiting(); err != nil || n < s.run.held {
			continue
		}
		short, stop := context.WithTimeout(ctx, time.Second)
		_, err := stubengine.Post(short, s.url()+"/v1/completions", []byte(`{"model": "m0", "prompt": "one more"}`), false)
		stop()
		if errors.As(err, &status) {
			if status.Status == http.StatusTooManyRequests && status.Retry != "" && strings.Contains(status.Body, "queue_full") {
				return nil
			}
			return status
		}
	}
	return errors.New("a queue that is full refuses nobody")
}

// waiting returns the number of requests for the only model that have no turn.
func (s *system) waiting() (n int, err error) {
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/metrics", s.pickerAdmin))
	if i := strings.Index(text, `medusa_picker_waiting{model="m0"} `); i >= 0 {
		_, err = fmt.Sscanf(text[i:], `medusa_picker_waiting{model="m0"} %d`, &n)
	}
	return n, err
}

// post asks and reads the whole answer. If it closed the answer before its end, the request would count as one whose
// client has left.
func post(client *http.Client, url, body string) error {
	response, err := client.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return err
}
