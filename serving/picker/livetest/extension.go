package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"medusa/test/stubengine"
)

// extension uses the picker of the Gateway API inference extension instead of medusa-picker, with the same configuration of Envoy but for the address of the picker. It
// uses engines instead of agents, because agents refuse requests without the tickets of medusa-picker. So the configuration follows the protocol,
// and does not depend on behaviour that only one picker has. A request that cannot be read gets the same status from both.
func (r *run) extension() (string, error) {
	s, err := r.newSystem()
	if err != nil {
		return "", err
	}
	at, err := freePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	s.Picker = fmt.Sprintf("{socket_address: {address: 127.0.0.1, port_value: %d}}", at)
	if err := s.fill("envoy.yaml", filepath.Join(r.work, "envoy.yaml")); err != nil {
		return "", err
	}
	port := strconv.Itoa(s.GPUs[0].Port)
	hosts := make([]string, len(s.GPUs))
	s.agents = nil
	for i, g := range s.GPUs {
		p, err := r.start("http://", filepath.Join(r.build, "stub-engine"), "--listen", g.String(), "--model", "m0", "--service", "20ms")
		if err != nil {
			return "", err
		}
		defer p.kill()
		hosts[i] = g.Host
	}
	if s.picker, err = r.start("serving", filepath.Join(r.build, "extension-picker"), "-port", strconv.Itoa(at), "-pods", strings.Join(hosts, ","), "-target", port); err != nil {
		return "", err
	}
	defer s.picker.kill()
	const requests = 90
	for _, cluster := range []string{"gpus", "gpus-by-header"} {
		s.Cluster = cluster
		if err := s.listener(); err != nil {
			return "", err
		}
		if s.envoy, err = s.run.startEnvoy(); err != nil {
			return "", err
		}
		if err := s.answersOf(requests); err != nil {
			return "", fmt.Errorf("%s: %w\n%s\n%s", cluster, err, s.envoy.output(), s.picker.output())
		}
		if cluster == "gpus-by-header" {
			if err := s.cut(); err != nil {
				return "", err
			}
		}
		if err := s.envoy.stop(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("extension-answers=%d clusters=2", 2*requests), nil
}

// answersOf asks, and demands that each endpoint has answered some of the requests.
func (s *system) answersOf(requests int) error {
	// The extension's picker sends a request without a body to any endpoint. Engines do not know the path.
	if err := s.reach(http.MethodGet, "/other", http.StatusNotFound); err != nil {
		return err
	}
	err := together(requests, func(i int) error {
		prompt := fmt.Sprintf("%d %s", i, strings.Repeat("long ", 20_000*(i%2)))
		got, err := stubengine.Ask(context.Background(), s.url(), "m0", prompt, i%3 == 0)
		if err == nil && got != stubengine.Answer("m0", prompt) {
			err = fmt.Errorf("another answer: %.80q", got)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = stubengine.Post(context.Background(), s.url()+"/v1/completions", []byte(`{"model"`), false)
	var status *stubengine.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusBadRequest {
		return fmt.Errorf("a body that is no JSON: %w, want status 400", err)
	}
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", s.Admin))
	if err != nil {
		return err
	}
	answered := 0
	for _, g := range s.GPUs {
		m := regexp.MustCompile(regexp.QuoteMeta(s.Cluster+"::"+g.String()) + `::rq_success::(\d+)`).FindStringSubmatch(text)
		if m == nil || m[1] == "0" {
			return fmt.Errorf("%s has answered nothing:\n%s", g, text)
		}
		n, _ := strconv.Atoi(m[1])
		answered += n
	}
	if answered < requests { // the very first request counts, too: its status is below 500
		return fmt.Errorf("the endpoints have answered %d of %d requests", answered, requests)
	}
	return nil
}

// cut makes an engine die within an answer. Envoy calls that a protocol error: HTTP/1 gives the length of a body in chunks, and this body ends too
// early.
func (s *system) cut() error {
	if text, err := stubengine.Ask(context.Background(), s.url(), "m0", stubengine.Break, true); err == nil {
		return fmt.Errorf("an answer that was cut is whole: %q", text)
	}
	return s.envoy.wait("failed: 200 UPE upstream_reset_after_response_started{protocol_error}")
}
