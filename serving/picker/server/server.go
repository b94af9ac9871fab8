// Package server is medusa-picker: the watched endpoints, the queue, and the ports for Envoy and for administration.
//
// In: settings, and lists of endpoints over time. Out: the external processor (package extproc), gRPC health, metrics. Fails: a port that is
// taken, a secret that cannot be read. An agent that does not report takes no requests, and is asked again.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
	"medusa/serving/picker/extproc"
	"medusa/serving/picker/fleet"
	"medusa/serving/picker/settings"
	"medusa/serving/schedule"
)

// Server is a picker.
type Server struct {
	settings  *settings.Settings
	secret    link.Secret
	fleet     *fleet.Fleet
	queue     *dispatch.Queue
	process   *extproc.Server
	health    *health.Server
	out       io.Writer
	transport *http.Transport

	mu      sync.Mutex
	watched map[string]context.CancelFunc // by address
	unheard map[string]bool               // addresses whose agents were not asked yet
	ready   chan struct{}
	isReady bool
	tasks   sync.WaitGroup
}

// New makes a Server without endpoints. log may be nil.
func New(s *settings.Settings, out io.Writer, log *dispatch.Log) (*Server, error) {
	secret, err := link.ReadSecret(s.Secret)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	clock := func() float64 { return time.Since(began).Seconds() }
	p := &Server{settings: s, secret: secret, out: out, health: health.NewServer(), ready: make(chan struct{}), watched: map[string]context.CancelFunc{},
		unheard: map[string]bool{}, transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}}
	config := fleet.Config{Places: s.MaxEndpoints, Victim: schedule.LRU{Global: true}, Clock: clock}
	for _, m := range s.Models {
		config.Models = append(config.Models, m.Name)
	}
	p.fleet = fleet.New(config)
	if p.queue, err = dispatch.NewQueue(dispatch.Config{Policy: s.Policy.Name, Params: s.Params(), GPUs: s.MaxEndpoints}, p.fleet, clock, log); err != nil {
		return nil, err
	}
	for place := range s.MaxEndpoints {
		p.queue.LoseGPU(place) // until its agent reports
	}
	p.process = &extproc.Server{Settings: s, Secret: secret, Fleet: p.fleet, Queue: p.queue, Ready: p.ready, Boot: rand.Text(), Count: extproc.NewCounters()}
	p.status(healthpb.HealthCheckResponse_NOT_SERVING)
	return p, nil
}

// status sets the health of the services that ask for requests. The process itself is alive.
func (p *Server) status(is healthpb.HealthCheckResponse_ServingStatus) {
	p.health.SetServingStatus("liveness", healthpb.HealthCheckResponse_SERVING)
	for _, service := range []string{"", "readiness", pb.ExternalProcessor_ServiceDesc.ServiceName} {
		p.health.SetServingStatus(service, is)
	}
}

func (p *Server) warn(format string, args ...any) {
	fmt.Fprintf(p.out, "medusa-picker: "+format+"\n", args...)
}

// Serve answers Envoy and the administration port until ctx ends. It then takes no new requests, and gives present ones some time to end.
func (p *Server) Serve(ctx context.Context, envoy, admin net.Listener) error {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	pb.RegisterExternalProcessorServer(g, p.process)
	healthpb.RegisterHealthServer(g, p.health)
	pages := &http.Server{Handler: p.pages(), ReadHeaderTimeout: 30 * time.Second}
	ended := make(chan error, 2)
	go func() { ended <- g.Serve(envoy) }()
	go func() {
		if err := pages.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	p.health.Shutdown()
	stopped := time.AfterFunc(drain, g.Stop)
	g.GracefulStop()
	stopped.Stop()
	_ = pages.Close()
	p.mu.Lock()
	for _, cancel := range p.watched {
		cancel()
	}
	p.mu.Unlock()
	p.tasks.Wait()
	return err
}

// maxMessage bounds a message of Envoy, and drain the time for present requests to end.
const (
	maxMessage = 16 << 20
	drain      = 60 * time.Second
)

func (p *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		p.process.Count.Write(w)
		fmt.Fprint(w, "# HELP medusa_picker_waiting Requests without a turn.\n# TYPE medusa_picker_waiting gauge\n")
		for fn, m := range p.settings.Models {
			fmt.Fprintf(w, "medusa_picker_waiting{model=%q} %d\n", m.Name, p.process.Waiting(fn))
		}
		waiting, running := p.queue.Queued()
		fmt.Fprintf(w, "# HELP medusa_picker_queue Requests that the policy knows.\n# TYPE medusa_picker_queue gauge\nmedusa_picker_queue{state=\"waiting\"} %d\nmedusa_picker_queue{state=\"running\"} %d\n", waiting, running)
		fmt.Fprintf(w, "# HELP medusa_picker_endpoints Endpoints that report.\n# TYPE medusa_picker_endpoints gauge\nmedusa_picker_endpoints %d\n", p.fleet.Up())
	})
	return mux
}
