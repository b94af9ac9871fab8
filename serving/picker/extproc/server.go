package extproc

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"medusa/internal/apierror"
	"medusa/internal/httplimit"
	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
	"medusa/serving/picker/fleet"
	"medusa/serving/picker/settings"
)

// Server is the external processor.
type Server struct {
	pb.UnimplementedExternalProcessorServer
	Settings *settings.Settings
	Secret   link.Secret
	Fleet    *fleet.Fleet
	Queue    *dispatch.Queue
	Ready    <-chan struct{} // closed once all agents were asked for their requests and engines
	Boot     string          // begins the ID of each request: no two pickers use the same
	Count    *Counters
	Bodies   *httplimit.Bodies

	mu      sync.Mutex
	next    uint64
	reading int                     // requests that are not complete
	waiting map[int]int             // requests without a turn, by function
	endings map[string]chan float64 // of requests whose end only the agent sees
}

// id makes the ID of a request.
func (s *Server) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.Boot + "." + strconv.FormatUint(s.next, 36)
}

// maxReading bounds the requests that are not complete. Complete ones are bounded by max_waiting, and by the places of endpoints.
const maxReading = 8192

// enter counts a request that is not complete, until exit. It refuses the request if there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading >= maxReading {
		return false
	}
	s.reading++
	return true
}

func (s *Server) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading--
}

// join counts a waiting request. It refuses the request if too many of its model wait.
func (s *Server) join(fn int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[int]int{}
	}
	if n := s.waiting[fn]; n >= s.Settings.MaxWaiting {
		return &apierror.Error{Status: http.StatusTooManyRequests, Kind: apierror.RateLimit, Code: "queue_full",
			Message: strconv.Itoa(n) + " requests wait for " + s.Settings.Models[fn].Name + " already", Retry: int(math.Ceil(max(1, s.Fleet.Drain(fn, n))))}
	}
	s.waiting[fn]++
	return nil
}

func (s *Server) leave(fn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[fn]--
}

// Waiting returns the number of requests of a function that have no turn.
func (s *Server) Waiting(fn int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[fn]
}

// Reported ends the requests that an agent reports as ended.
func (s *Server) Reported(ended []link.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ended {
		if c := s.endings[e.ID]; c != nil {
			c <- e.Service
			delete(s.endings, e.ID)
		}
	}
}

// expect returns a channel that gets the running time of a request once its agent reports the end.
func (s *Server) expect(id string) <-chan float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endings == nil {
		s.endings = map[string]chan float64{}
	}
	c := make(chan float64, 1)
	s.endings[id] = c
	return c
}

func (s *Server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.endings, id)
}

// turn waits until the policy has decided.
func (s *Server) turn(ctx context.Context, q *query) (*dispatch.Turn, error) {
	select {
	case <-s.Ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	eligible := s.Fleet.Eligible(q.Fn, q.subset)
	if len(eligible) == 0 {
		return nil, &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "no_endpoint",
			Message: "no endpoint that may be used serves " + q.model.Name, Retry: int(math.Ceil(s.Settings.Gone))}
	}
	if q.subset != nil {
		q.Only = eligible
	}
	if err := s.join(q.Fn); err != nil {
		return nil, err
	}
	defer s.leave(q.Fn)
	return s.Queue.Wait(ctx, q.Ask)
}

// seconds as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
