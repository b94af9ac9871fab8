package extproc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"medusa/internal/apierror"
	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
)

// Process implements the service: one call for each HTTP request.
func (s *Server) Process(stream pb.ExternalProcessor_ProcessServer) error {
	ctx, gone := context.WithCancel(stream.Context())
	defer gone()
	waiting, replied := context.WithCancelCause(ctx)
	defer replied(nil)
	messages := make(chan *pb.ProcessingRequest)
	// The data plane ends the stream when the client leaves. It may also reply itself, for example after a timeout of its own. A waiting request has to
	// notice both.
	go func() {
		defer close(messages)
		defer gone()
		whole := false
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if m.GetResponseHeaders() != nil {
				replied(errReplied)
			}
			// Envoy may send the last part of a body twice (envoyproxy/envoy#46237). While the request waits, no reader would take the second one.
			if part := m.GetRequestBody(); part != nil || m.GetRequestTrailers() != nil {
				if whole {
					continue
				}
				whole = part == nil || part.EndOfStream
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	if !s.enter() {
		return s.refuse(stream, "", &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "busy", Message: "too many requests are incomplete", Retry: 1})
	}
	q := &query{body: s.Bodies.New(int64(s.Settings.MaxBody))}
	defer q.body.Release()
	err := s.read(messages, q)
	s.exit()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if errors.Is(err, errReplied) {
		return s.stepAside(stream, messages, q)
	}
	if err != nil {
		return s.refuse(stream, "", err)
	}
	limit, cancel := context.WithTimeout(waiting, seconds(q.model.Timeout))
	defer cancel()
	arrived := time.Now()
	turn, err := s.turn(limit, q)
	if waiting.Err() != nil && turn == nil {
		return s.stepAside(stream, messages, q)
	}
	if err != nil {
		return s.refuse(stream, q.model.Name, err)
	}
	s.Count.waited(q.model.Name, time.Since(arrived))
	return s.serve(stream, messages, q, turn)
}

// statusLeft counts clients that have left, as nginx does.
const statusLeft = 499

// errReplied means that the data plane itself answers a request that has no endpoint yet.
var errReplied = errors.New("the data plane has replied")

// stepAside passes on the data plane's own reply, if there is one. The protocol wants an answer to each part of the reply, and none to the request
// any more.
func (s *Server) stepAside(stream pb.ExternalProcessor_ProcessServer, messages <-chan *pb.ProcessingRequest, q *query) error {
	x := &exchange{server: s, stream: stream, q: q}
	over, err := false, error(nil)
	if q.reply != nil {
		over, err = x.pass(q.reply)
	}
	for !over && err == nil {
		m, more := <-messages
		if !more {
			break
		}
		over, err = x.pass(m)
	}
	if x.status == 0 {
		x.status = statusLeft
	}
	if q.model != nil {
		s.Count.answered(q.model.Name, x.status)
	}
	return err
}

func (s *Server) refuse(stream pb.ExternalProcessor_ProcessServer, model string, err error) error {
	status, answer := immediate(err)
	s.Count.answered(model, status)
	return stream.Send(answer)
}

// serve sends a request to its endpoint, and waits for its end. The turn ends in each case.
func (s *Server) serve(stream pb.ExternalProcessor_ProcessServer, messages <-chan *pb.ProcessingRequest, q *query, turn *dispatch.Turn) error {
	id := s.id()
	s.Fleet.Sent(turn.Decision, id)
	x := &exchange{server: s, stream: stream, q: q, began: time.Now()}
	if q.unseen {
		x.reported = s.expect(id)
	}
	service, err := x.run(messages, turn, id)
	if x.reported != nil && service == 0 && err == nil && x.status < http.StatusBadRequest && x.status > 0 {
		// The data plane has ended the stream before the end of the answer.
		go func() {
			defer s.forget(id)
			select {
			case took := <-x.reported:
				s.end(turn, took)
			case <-time.After(seconds(q.model.Timeout)):
				s.end(turn, 0)
			}
		}()
		s.Count.answered(q.model.Name, x.status)
		return nil
	}
	s.forget(id)
	s.end(turn, service)
	if x.status == 0 {
		x.status = statusLeft
	}
	s.Count.answered(q.model.Name, x.status)
	return err
}

// end ends a turn. The queue's turn ends last, so that the next decision sees the free place.
func (s *Server) end(turn *dispatch.Turn, service float64) {
	s.Fleet.Ended(turn.Decision)
	if service > 0 {
		turn.Done(service)
	} else {
		turn.Lost()
	}
}

// exchange is a request that has its turn, and the answer to it.
type exchange struct {
	server   *Server
	stream   pb.ExternalProcessor_ProcessServer
	q        *query
	began    time.Time
	held     float64 // seconds until the engine was ready
	status   int
	reported <-chan float64 // nil: the answer passes the picker
}

// run passes the request and its answer on. It returns the running time of a complete answer, or 0.
func (x *exchange) run(messages <-chan *pb.ProcessingRequest, turn *dispatch.Turn, id string) (service float64, err error) {
	s := x.server
	endpoints := s.Fleet.Address(turn.GPU)
	if endpoints == "" {
		var answer *pb.ProcessingResponse
		x.status, answer = immediate(&apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "no_endpoint", Message: "the endpoint has left"})
		return 0, x.stream.Send(answer)
	}
	if s.Settings.Fallbacks > 0 {
		others := s.Fleet.Fallbacks(turn.GPU, x.q.Fn, s.Settings.Fallbacks, s.Fleet.Eligible(x.q.Fn, x.q.subset))
		endpoints = strings.Join(append([]string{endpoints}, others...), ",")
	}
	ticket := s.Secret.Ticket(id, x.q.model.Name, time.Now().Add(seconds(x.q.model.Timeout)))
	if err := x.stream.Send(destined(endpoints, ticket)); err != nil {
		return 0, err
	}
	for _, p := range pieces(x.q.body.Bytes(), !x.q.trailers) {
		if err := x.stream.Send(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_RequestBody{RequestBody: &pb.BodyResponse{Response: p}}}); err != nil {
			return 0, err
		}
	}
	x.q.body.Release() // the answer may take minutes
	if x.q.trailers {
		if err := x.stream.Send(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_RequestTrailers{RequestTrailers: &pb.TrailersResponse{}}}); err != nil {
			return 0, err
		}
	}
	for m := range messages {
		over, err := x.pass(m)
		if err != nil {
			return 0, err
		}
		if over && x.status < http.StatusBadRequest {
			return max(time.Since(x.began).Seconds()-x.held, minService), nil
		}
		if over {
			return 0, nil
		}
	}
	return 0, nil
}

// minService is the shortest running time of an answer. 0 means that there was no answer.
const minService = 1e-6

// pass passes on a part of the answer, and reports whether it was the last.
func (x *exchange) pass(m *pb.ProcessingRequest) (over bool, err error) {
	switch part := m.Request.(type) {
	case *pb.ProcessingRequest_ResponseHeaders:
		x.look(part.ResponseHeaders.GetHeaders().GetHeaders())
		if served := m.GetMetadataContext().GetFilterMetadata()[destinationSpace].GetFields()[servedKey].GetStringValue(); served != "" {
			if x.server.Fleet.Has(served) {
				x.server.Count.served(served)
			}
		}
		return part.ResponseHeaders.EndOfStream, x.stream.Send(onward())
	case *pb.ProcessingRequest_ResponseBody:
		for _, p := range pieces(part.ResponseBody.Body, part.ResponseBody.EndOfStream) {
			if err := x.stream.Send(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseBody{ResponseBody: &pb.BodyResponse{Response: p}}}); err != nil {
				return false, err
			}
		}
		return part.ResponseBody.EndOfStream, nil
	case *pb.ProcessingRequest_ResponseTrailers:
		return true, x.stream.Send(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseTrailers{ResponseTrailers: &pb.TrailersResponse{}}})
	}
	return false, nil
}

// look reads the status and the waiting time from the headers of an answer.
func (x *exchange) look(headers []*core.HeaderValue) {
	for _, h := range headers {
		value := h.Value
		if len(h.RawValue) > 0 {
			value = string(h.RawValue)
		}
		switch {
		case h.Key == ":status":
			if status, err := strconv.Atoi(value); err == nil && status >= 100 && status < 600 { // it becomes a label
				x.status = status
			}
		case strings.EqualFold(h.Key, link.HeaderHeld):
			x.held, _ = strconv.ParseFloat(value, 64)
		}
	}
}
