package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The number of pairs of requests that are compared, and of clients for the throughput.
const (
	pairs    = 2000
	atOnce   = 32
	loadTime = 5 * time.Second
)

// overhead asks a stub engine directly, and through Envoy, the picker and an agent, by turns.
func (r *run) overhead() (string, error) {
	s, err := r.newSystem()
	if err != nil {
		return "", err
	}
	stub := func(int) ([]string, string) {
		return []string{filepath.Join(r.build, "stub-engine"), "--listen", "127.0.0.1:{port}", "--model", "{name}"}, "memory: 1, slots: 64"
	}
	port, err := freePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	direct, err := r.start("http://", filepath.Join(r.build, "stub-engine"), "--listen", address, "--model", "m0")
	if err != nil {
		return "", err
	}
	for i := range s.GPUs {
		if err := s.agent(i, 1, stub); err != nil {
			return "", err
		}
	}
	if _, err := s.pick("{name: mqfq, d: 64}", 0, 1000, 1); err != nil {
		return "", err
	}
	if err := s.proxy(); err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	took := func(url string) (time.Duration, error) {
		began := time.Now()
		err := post(client, url, `{"model": "m0", "prompt": "x"}`)
		return time.Since(began), err
	}
	var added []float64
	for i := range pairs {
		a, errA := took("http://" + address)
		b, errB := took(s.url())
		if err := errors.Join(errA, errB); err != nil {
			return "", err
		}
		if i >= pairs/10 { // connections are warm, and engines run
			added = append(added, (b-a).Seconds()*1000)
		}
	}
	slices.Sort(added)
	began, answers := time.Now(), make([]int, atOnce)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() {
			for time.Since(began) < loadTime {
				if _, err := took(s.url()); err != nil {
					return
				}
				answers[i]++
			}
		})
	}
	clients.Wait()
	total := 0
	for _, n := range answers {
		total += n
	}
	rate := float64(total) / time.Since(began).Seconds()
	direct.kill()
	if err := s.stop(); err != nil {
		return "", err
	}
	return fmt.Sprintf("added-ms-p50=%.2f added-ms-p99=%.2f requests-per-second=%.0f", added[len(added)/2], added[len(added)*99/100], rate), nil
}
