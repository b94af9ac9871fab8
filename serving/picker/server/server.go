// Package server is medusa-picker: the watched endpoints, the queue, and the ports for Envoy and for administration.
//
// In: settings, and lists of endpoints over time. Out: the external processor (package extproc), gRPC health, metrics. Fails: a port that is
// taken, a secret or a certificate that cannot be read. An agent that does not report takes no requests, and is asked again.
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

	"medusa/internal/httplimit"
	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
	"medusa/serving/picker/extproc"
	"medusa/serving/picker/fleet"
	"medusa/serving/picker/settings"
	"medusa/serving/schedule"
)

// Server is a picker.
type Server struct {
	settings    *settings.Settings
	secret      link.Secret
	fleet       *fleet.Fleet
	queue       *dispatch.Queue
	process     *extproc.Server
	health      *health.Server
	out         io.Writer
	transport   *http.Transport
	credentials grpc.ServerOption

	mu      sync.Mutex
	watched map[string]context.CancelFunc // by address
	unheard map[string]bool               // addresses whose agents were not asked yet
	ready   chan struct{}
	isReady bool
	tasks   sync.WaitGroup
}

// bodyRoom is the memory for the bodies of all requests that wait, unless one body may be larger.
const bodyRoom = 64 << 20

// New makes a Server without endpoints. log may be nil.
func New(s *settings.Settings, out io.Writer, log *dispatch.Log) (*Server, error) {
	secret, err := link.ReadSecret(s.Secret)
	if err != nil {
		return nil, err
	}
	creds, err := credentialsOf(s.TLS)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	clock := func() float64 { return time.Since(began).Seconds() }
	p := &Server{settings: s, secret: secret, credentials: creds, out: out, health: health.NewServer(), ready: make(chan struct{}), watched: map[string]context.CancelFunc{},
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
	p.process = &extproc.Server{Settings: s, Secret: secret, Fleet: p.fleet, Queue: p.queue, Ready: p.ready, Boot: rand.Text(), Count: extproc.NewCounters(),
		Bodies: httplimit.NewBodies(int64(max(bodyRoom, s.MaxBody)))}
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
	g := grpc.NewServer(p.credentials, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(headerTime))
	pb.RegisterExternalProcessorServer(g, p.process)
	healthpb.RegisterHealthServer(g, p.health)
	pages := &http.Server{Handler: p.pages(), MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: time.Minute}
	ended := make(chan error, 2)
	go func() { ended <- g.Serve(httplimit.New(limits).Listen(envoy)) }()
	go func() {
		if err := pages.Serve(httplimit.New(limits).Listen(admin)); !errors.Is(err, http.ErrServerClosed) {
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

const (
	maxMessage = 2 << 20          // of Envoy; it holds at most 1 MiB of a body by default
	maxHeader  = 16 << 10         // of a call or of a page
	headerTime = 10 * time.Second // for a handshake or a header
	drain      = 60 * time.Second // for present requests to end
)

func (p *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	// For Kubernetes, whose gRPC probes have no certificate.
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		is, err := p.health.Check(r.Context(), &healthpb.HealthCheckRequest{Service: "readiness"})
		if err != nil || is.Status != healthpb.HealthCheckResponse_SERVING {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
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
