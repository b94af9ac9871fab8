package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"medusa/serving/agent/link"
)

// Use changes the endpoints. Agents of new ones are asked for their reports. Requests of endpoints that have left run on.
func (p *Server) Use(ctx context.Context, endpoints []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	came, left, err := p.fleet.Set(endpoints)
	if err != nil {
		return err
	}
	for address, place := range left {
		p.watched[address]()
		delete(p.watched, address)
		delete(p.unheard, address)
		p.queue.LoseGPU(place)
		p.process.Count.Left(address)
		p.warn("endpoint %s has left", address)
	}
	for address, place := range came {
		watching, cancel := context.WithCancel(ctx)
		p.watched[address] = cancel
		p.unheard[address] = true
		p.tasks.Go(func() { p.watch(watching, address, place) })
	}
	p.settle()
	return nil
}

// heard records that an agent was asked, with or without an answer.
func (p *Server) heard(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.unheard, address)
	p.settle()
}

// settle allows decisions after all agents were asked. Without their reports, decisions would start engines twice.
func (p *Server) settle() {
	if p.isReady || len(p.unheard) > 0 {
		return
	}
	p.isReady = true
	close(p.ready)
	p.status(healthpb.HealthCheckResponse_SERVING)
	p.warn("ready: %d endpoints were asked", len(p.watched))
}

// askAgain is the time between two requests to an agent that does not answer.
const askAgain = 200 * time.Millisecond

// watch asks an agent for reports until ctx ends.
func (p *Server) watch(ctx context.Context, address string, place int) {
	var last *link.Report
	heard := time.Now()
	complained := false
	for ctx.Err() == nil {
		r, err := p.ask(ctx, address, last)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = p.take(place, address, r)
		}
		if err == nil {
			heard, last = time.Now(), r
			complained = false
			p.heard(address)
			continue
		}
		var proof *link.ProofError
		// An agent that refuses connections is gone at once. Only an agent that answers slowly has the time settings.Gone.
		if errors.As(err, &proof) || r != nil || last == nil || time.Since(heard) > seconds(p.settings.Gone) || refused(err) {
			if !complained {
				p.warn("endpoint %s does not report: %v", address, err)
				complained = true
			}
			if p.fleet.Down(place) {
				p.queue.LoseGPU(place)
			}
			last = nil
			p.heard(address)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}

// refused reports whether the agent's port is closed or the connection was cut.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
}

// take stores a report, and lets the queue use it.
func (p *Server) take(place int, address string, r *link.Report) error {
	up, err := p.fleet.Report(place, r)
	switch {
	case err != nil:
		return err
	case up:
		p.warn("endpoint %s reports: GPU %s, %d models, %d requests", address, r.GPU, len(r.Models), len(r.Requests))
		p.queue.ReturnGPU(place)
	case r.Leaving:
		if p.fleet.Down(place) {
			p.warn("endpoint %s ends", address)
			p.queue.LoseGPU(place)
		}
	default:
		p.queue.Changed()
	}
	p.process.Reported(r.Ended)
	return nil
}

// ask gets a report: the first one at once, a later one when it differs from the last.
func (p *Server) ask(ctx context.Context, address string, last *link.Report) (*link.Report, error) {
	q := url.Values{}
	patience := seconds(p.settings.Gone)
	if last != nil {
		q = url.Values{"boot": {last.Boot}, "after": {strconv.FormatUint(last.Version, 10)}, "wait": {(patience / 2).String()}}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+link.ReportPath+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	proof := p.secret.Ask(time.Now(), address)
	request.Header.Set(link.HeaderProof, proof)
	response, err := p.transport.RoundTrip(request) // which follows no redirects: an answer is of the address that was asked
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for a report: status %d: %.200s", response.StatusCode, data)
	}
	if err := p.secret.CheckSeal(response.Header.Get(link.HeaderProof), proof, data); err != nil {
		return nil, err
	}
	r := &link.Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return r, nil
}

// maxReport bounds a report in bytes.
const maxReport = 64 << 20

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
