package main

import (
	"fmt"
	"strings"
)

// atATime is the number of clients that ask at the same time.
const atATime = 12

// setting is a way to run the system.
type setting struct {
	policy, cluster, responseBody string
	fallbacks                     int
}

// ways has each policy, both ways in which Envoy finds the endpoint, and answers that do not pass the picker.
var ways = []setting{
	{"{name: mqfq}", "gpus", "FULL_DUPLEX_STREAMED", 1},
	{"{name: lalbo3}", "gpus-by-header", "FULL_DUPLEX_STREAMED", 0},
	{"{name: torpor}", "gpus", "FULL_DUPLEX_STREAMED", 1},
	{"{name: mqfq}", "gpus-by-header", "NONE", 0},
}

// tokens compares every answer with that of the engine alone. The agents run on: each picker takes over from the one before.
func (r *run) tokens() (string, error) {
	s, err := r.referenceAgents()
	if err != nil {
		return "", err
	}
	for n, w := range ways {
		log, err := s.pick(w.policy, w.fallbacks, 1000, models)
		if err != nil {
			return "", err
		}
		s.Cluster, s.ResponseBody = w.cluster, w.responseBody
		if err := s.listener(); err != nil {
			return "", err
		}
		if err := s.proxy(); err != nil {
			return "", err
		}
		list := r.load(r.known, max(1, r.requests/len(ways)), uint64(n))
		if err := r.all(s.url(), atATime, list, judge); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", w.policy, err, s.picker.output())
		}
		if err := s.empty(); err != nil {
			return "", fmt.Errorf("%s: %w", w.policy, err)
		}
		if err := s.envoy.stop(); err != nil {
			return "", err
		}
		if err := s.picker.stop(); err != nil {
			return "", err
		}
		if err := s.replay(log); err != nil {
			return "", err
		}
	}
	starts, restored, used := 0, 0, 0
	for _, a := range s.agents {
		starts += strings.Count(a.output(), "serving m")
		restored += strings.Count(a.output(), "start restored")
		if strings.Contains(a.output(), "serving m") {
			used++
		}
	}
	s.envoy, s.picker = nil, nil
	if err := s.stop(); err != nil {
		return "", err
	}
	if used != len(s.agents) {
		return "", fmt.Errorf("%d of %d agents have started an engine", used, len(s.agents))
	}
	return fmt.Sprintf("requests=%d policies=mqfq,lalbo3,torpor identical starts=%d restored=%d", r.requests/len(ways)*len(ways), starts, restored), nil
}
