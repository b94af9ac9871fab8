package extproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"medusa/internal/httplimit"
	"medusa/serving/agent"
	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
	"medusa/serving/picker/fleet"
	"medusa/serving/picker/settings"
	"medusa/serving/schedule"
)

// fixture is a picker with two endpoints, whose reports the test makes. Each endpoint can run a and b, with one request each, and one of them
// at a time.
type fixture struct {
	*Server
	t      *testing.T
	client pb.ExternalProcessorClient
	ready  chan struct{}
}

var addresses = []string{"10.0.0.1:8000", "10.0.0.2:8000"}

func start(t *testing.T, change func(s *settings.Settings)) *fixture {
	t.Helper()
	s := &settings.Settings{MaxWaiting: 3, MaxBody: 300_000, MaxEndpoints: 2, Gone: 5, Models: []settings.Model{{Name: "a", Weight: 1, Timeout: 60}, {Name: "b", Weight: 1, Timeout: 60}}}
	if change != nil {
		change(s)
	}
	began := time.Now()
	clock := func() float64 { return time.Since(began).Seconds() }
	fl := fleet.New(fleet.Config{Models: []string{"a", "b"}, Places: 2, Victim: schedule.LRU{}, Clock: clock})
	q, err := dispatch.NewQueue(dispatch.Config{Policy: "fcfs", Params: schedule.Params{Functions: 2}, GPUs: 2}, fl, clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ready: make(chan struct{})}
	f.Server = &Server{Settings: s, Secret: link.Secret(strings.Repeat("x", 32)), Fleet: fl, Queue: q, Ready: f.ready, Boot: "boot", Count: NewCounters(), Bodies: httplimit.NewBodies(1 << 20)}
	if _, _, err := fl.Set(addresses); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	pb.RegisterExternalProcessorServer(g, f.Server)
	go func() { _ = g.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); g.Stop() })
	f.client = pb.NewExternalProcessorClient(conn)
	return f
}

// up makes the endpoints report, and lets the picker decide.
func (f *fixture) up() *fixture {
	for place := range addresses {
		f.report(place, link.Report{})
	}
	close(f.ready)
	return f
}

func (f *fixture) report(place int, r link.Report) {
	r.Models = []link.Model{{Name: "a", Memory: 1, Slots: 1, Start: 1, Service: 1}, {Name: "b", Memory: 1, Slots: 1, Start: 1, Service: 1}}
	r.Boot = fmt.Sprint(place)
	if _, err := f.Fleet.Report(place, &r); err != nil {
		f.t.Error(err)
	}
	f.Reported(r.Ended)
	f.Queue.Changed()
}

// call is one HTTP request, from the data plane's side.
type call struct {
	f      *fixture
	stream pb.ExternalProcessor_ProcessClient
	cancel context.CancelFunc
}

type option func(m *pb.ProcessingRequest)

func onlyOn(values ...string) option {
	return func(m *pb.ProcessingRequest) {
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		hint, err := structpb.NewStruct(map[string]any{subsetKey: list})
		if err != nil {
			panic(err)
		}
		m.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{subsetSpace: hint}}
	}
}

func modes(request, response filter.ProcessingMode_BodySendMode) option {
	return func(m *pb.ProcessingRequest) {
		m.ProtocolConfig = &pb.ProtocolConfiguration{RequestBodyMode: request, ResponseBodyMode: response}
	}
}

func (f *fixture) ask(body string, options ...option) *call {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	f.t.Cleanup(cancel)
	stream, err := f.client.Process(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	c := &call{f, stream, cancel}
	head := &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{Headers: headers(":method", "POST", "content-type", "application/json", ":path", "/v1/completions")}}}
	for _, o := range options {
		o(head)
	}
	c.send(head)
	half := len(body) / 2
	c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(body[:half])}}})
	c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(body[half:]), EndOfStream: true}}})
	return c
}

func headers(pairs ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

func (c *call) send(m *pb.ProcessingRequest) {
	c.f.t.Helper()
	// A stream that was answered at once may be over.
	if err := c.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		c.f.t.Fatal(err)
	}
}

func (c *call) next() *pb.ProcessingResponse {
	c.f.t.Helper()
	r, err := c.stream.Recv()
	if err != nil {
		c.f.t.Fatal(err)
	}
	return r
}

// endpoints returns the endpoints to which the request may go (header and metadata have to agree), and its body.
func (c *call) endpoints() (list []string, body string) {
	c.f.t.Helper()
	r := c.next()
	h := r.GetRequestHeaders().GetResponse()
	if h == nil {
		c.f.t.Fatalf("not sent on: %v", r)
	}
	value := ""
	for _, x := range h.HeaderMutation.SetHeaders {
		if x.Header.Key == destinationHeader {
			value = string(x.Header.RawValue)
		}
	}
	if meta := r.DynamicMetadata.GetFields()[destinationSpace].GetStructValue().GetFields()[destinationHeader].GetStringValue(); meta != value || value == "" {
		c.f.t.Errorf("header %q, metadata %q", value, meta)
	}
	for {
		s := c.next().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if len(s.GetBody()) > maxChunk {
			c.f.t.Errorf("a part of %d bytes", len(s.GetBody()))
		}
		body += string(s.GetBody())
		if s.GetEndOfStream() {
			return strings.Split(value, ","), body
		}
	}
}

// answer plays the endpoint's answer.
func (c *call) answer(status, text string) {
	c.f.t.Helper()
	c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headers(":status", status, "x-medusa-held", "0.5")}}})
	if got := c.next().GetResponseHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(); !slices.Contains(got, link.HeaderHeld) {
		c.f.t.Errorf("removed headers %q", got)
	}
	c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte(text), EndOfStream: true}}})
	if got := c.next().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse(); string(got.GetBody()) != text || !got.GetEndOfStream() {
		c.f.t.Errorf("answer %q passes as %v", text, got)
	}
}

// refused returns the immediate answer.
func (c *call) refused() (status int, code, retry string) {
	c.f.t.Helper()
	r := c.next().GetImmediateResponse()
	if r == nil {
		c.f.t.Fatal("no immediate answer")
	}
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(r.Body, &body); err != nil {
		c.f.t.Errorf("body %q: %v", r.Body, err)
	}
	for _, h := range r.Headers.SetHeaders {
		if h.Header.Key == "retry-after" {
			retry = string(h.Header.RawValue)
		}
	}
	return int(r.Status.Code), body.Error.Code, retry
}

// queued waits until the queue has these numbers.
func (f *fixture) queued(waiting, running int) {
	f.t.Helper()
	var w, r int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if w, r = f.Queue.Queued(); w == waiting && r == running {
			return
		}
	}
	f.t.Fatalf("%d wait and %d run, not %d and %d", w, r, waiting, running)
}

const askA = `{"model": "a", "prompt": "x"}`

func TestRequestGoesToAnEndpoint(t *testing.T) {
	f := start(t, nil).up()
	body := `{"model": "a", "prompt": "` + strings.Repeat("x", 3*maxChunk) + `"}`
	c := f.ask(body)
	to, got := c.endpoints()
	if len(to) != 1 || !slices.Contains(addresses, to[0]) || got != body {
		t.Errorf("to %q, a body of %d bytes of %d", to, len(got), len(body))
	}
	f.queued(0, 1)
	c.answer("200", "the answer")
	f.queued(0, 0)
}

func TestTicketIsTheAgents(t *testing.T) {
	f := start(t, nil).up()
	r := f.ask(askA).next()
	for _, h := range r.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if h.Header.Key == link.HeaderTicket {
			if h.AppendAction != core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
				t.Error("a client could send a ticket of its own beside it")
			}
			if _, model, err := f.Secret.CheckTicket(string(h.Header.RawValue), time.Now()); err != nil || model != "a" {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no ticket")
}

func TestSubset(t *testing.T) {
	f := start(t, nil).up()
	for _, address := range []string{addresses[1], addresses[0]} {
		c := f.ask(askA, onlyOn("10.9.9.9:1", address))
		if to, _ := c.endpoints(); to[0] != address {
			t.Errorf("to %q, allowed was %s", to, address)
		}
		// The endpoint is full. A request that may only go there waits, although the other one is free.
		second := f.ask(askA, onlyOn(address))
		f.queued(1, 1)
		third := f.ask(askA)
		if to, _ := third.endpoints(); to[0] == address {
			t.Error("an endpoint that is full gets a request")
		}
		third.answer("200", "x")
		f.queued(1, 1)
		c.answer("200", "x")
		if to, _ := second.endpoints(); to[0] != address {
			t.Errorf("to %q, allowed was %s", to, address)
		}
		second.answer("200", "x")
		f.queued(0, 0)
	}
}

func TestNoEndpointIsA503(t *testing.T) {
	f := start(t, nil).up()
	for name, o := range map[string]option{"an empty subset": onlyOn(), "a subset of strangers": onlyOn("10.9.9.9:1"),
		"a subset that is no list": func(m *pb.ProcessingRequest) {
			onlyOn()(m)
			m.MetadataContext.FilterMetadata[subsetSpace].Fields[subsetKey] = structpb.NewNumberValue(1)
		}} {
		if status, code, _ := f.ask(askA, o).refused(); status != 503 || code != "no_endpoint" {
			t.Errorf("%s: %d %s", name, status, code)
		}
	}
	f.Fleet.Down(0)
	if status, _, _ := f.ask(askA, onlyOn(addresses[0])).refused(); status != 503 {
		t.Errorf("an endpoint that is down: %d", status)
	}
	f.Fleet.Down(1)
	if status, _, retry := f.ask(askA).refused(); status != 503 || retry != "5" {
		t.Errorf("no endpoint: %d, retry after %q", status, retry)
	}
	f.queued(0, 0)
}

func TestFullQueueIsA429(t *testing.T) {
	f := start(t, nil).up()
	var calls []*call
	for range 5 {
		calls = append(calls, f.ask(askA))
	}
	f.queued(3, 2)
	if status, code, retry := f.ask(askA).refused(); status != 429 || code != "queue_full" || retry == "" {
		t.Errorf("%d %s, retry after %q", status, code, retry)
	}
	for _, c := range calls {
		c.cancel()
	}
	f.queued(0, 0)
}

func TestClientErrors(t *testing.T) {
	f := start(t, nil).up()
	for _, row := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"model": "c"}`, 404, "model_not_found"},
		{`{"model"`, 400, ""}, {`[]`, 400, ""}, {`{"model": 5}`, 400, "invalid_type"},
		// Names are compared exactly, and a member is there once: engines differ in what they take of the others.
		{`{"MODEL": "a"}`, 400, ""}, {`{"model": "c", "MODEL": "a"}`, 404, "model_not_found"}, {`{"model": "a", "model": "a"}`, 400, "duplicate_member"},
		{`{"model": "a", "prompt": "` + strings.Repeat("x", 300_000) + `"}`, 413, "request_too_large"},
	} {
		if status, code, _ := f.ask(row.body).refused(); status != row.status || code != row.code {
			t.Errorf("%.40s: %d %q", row.body, status, code)
		}
	}
	path := func(m *pb.ProcessingRequest) {
		m.GetRequestHeaders().Headers = headers(":method", "POST", ":path", "/other")
	}
	if status, code, _ := f.ask(askA, path).refused(); status != 404 || code != "unknown_url" {
		t.Errorf("another path: %d %q", status, code)
	}
	flow := func(m *pb.ProcessingRequest) {
		m.GetRequestHeaders().Headers = headers(":method", "POST", "content-type", "application/json", ":path", "/v1/completions", "x-medusa-deadline", "soon")
	}
	if status, code, _ := f.ask(askA, flow).refused(); status != 400 || code != "invalid_header" {
		t.Errorf("a deadline that is none: %d %q", status, code)
	}
	coded := func(m *pb.ProcessingRequest) {
		m.GetRequestHeaders().Headers = headers(":method", "POST", "content-type", "application/json", "content-encoding", "lzma", ":path", "/v1/chat/completions")
	}
	if status, code, _ := f.ask(askA, coded).refused(); status != 415 || code != "unsupported_encoding" {
		t.Errorf("an unknown encoding: %d %q", status, code)
	}
	models := func(m *pb.ProcessingRequest) {
		m.GetRequestHeaders().Headers, m.GetRequestHeaders().EndOfStream = headers(":method", "GET", ":path", "/v1/models"), true
	}
	if status, _, _ := f.ask(askA, models).refused(); status != 200 {
		t.Errorf("the list of models: %d", status)
	}
}

func TestAnotherBodyModeIsRefused(t *testing.T) {
	f := start(t, nil).up()
	if status, code, _ := f.ask(askA, modes(filter.ProcessingMode_BUFFERED, filter.ProcessingMode_NONE)).refused(); status != 500 || code != "body_mode" {
		t.Errorf("%d %s", status, code)
	}
}

// If the stream ends, the client has left, and the next one gets its place.
func TestStreamEndIsCancellation(t *testing.T) {
	f := start(t, nil).up()
	first, second := f.ask(askA), f.ask(askA)
	first.endpoints()
	second.endpoints()
	third, fourth := f.ask(askA), f.ask(askA)
	f.queued(2, 2)
	third.cancel()
	f.queued(1, 2)
	if err := fourth.stream.CloseSend(); err != nil { // so Envoy ends a stream
		t.Fatal(err)
	}
	f.queued(0, 2)
	fifth := f.ask(askA)
	f.queued(1, 2)
	first.cancel()
	fifth.endpoints()
	f.queued(0, 2)
}

// Envoy may send the last part of a body twice. The picker still notices that a client leaves, and that an answer ends.
func TestLastPartTwice(t *testing.T) {
	f := start(t, nil).up()
	again := &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte(askA), EndOfStream: true}}}
	first, second := f.ask(askA), f.ask(askA)
	f.queued(0, 2)
	third := f.ask(askA)
	third.send(again)
	f.queued(1, 2)
	if err := third.stream.CloseSend(); err != nil { // so Envoy ends a stream
		t.Fatal(err)
	}
	f.queued(0, 2)
	first.cancel()
	second.cancel()
	f.queued(0, 0)
	c := f.ask(askA)
	c.send(again)
	if to, body := c.endpoints(); len(to) != 1 || body != askA {
		t.Errorf("to %q, body %q", to, body)
	}
	c.send(again)
	c.answer("200", "x")
	f.queued(0, 0)
}

// If a data plane answers a request itself, for example after a timeout of its own, its reply passes, and the request leaves the queue.
func TestDataPlaneReplies(t *testing.T) {
	f := start(t, nil).up()
	first, second := f.ask(askA), f.ask(askA)
	f.queued(0, 2)
	third := f.ask(askA)
	f.queued(1, 2)
	third.answer("504", "too late")
	f.queued(0, 2)
	first.endpoints()
	second.endpoints()
	// The same before the request was whole.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := f.client.Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fourth := &call{f, stream, cancel}
	fourth.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{Headers: headers(":method", "POST", "content-type", "application/json", ":path", "/v1/completions")}}})
	fourth.answer("408", "too slow")
	var out strings.Builder
	f.Count.Write(&out)
	if want := fmt.Sprintf("medusa_picker_requests_total{model=%q,code=%q} 1\n", "a", "504"); !strings.Contains(out.String(), want) {
		t.Errorf("metrics lack %s:\n%s", want, out.String())
	}
}

func TestEndpointsThatFollow(t *testing.T) {
	f := start(t, func(s *settings.Settings) { s.Fallbacks = 3 }).up()
	first, _ := f.ask(askA).endpoints()
	if len(first) != 2 || first[0] == first[1] {
		t.Errorf("endpoints %q", first)
	}
	second, _ := f.ask(askA, onlyOn(first[1])).endpoints()
	if !slices.Equal(second, first[1:]) {
		t.Errorf("a subset of one: endpoints %q", second)
	}
}

// If the body of the answer does not pass the picker, the agent's report ends the turn.
func TestReportEndsATurn(t *testing.T) {
	f := start(t, nil).up()
	c := f.ask(askA, modes(filter.ProcessingMode_FULL_DUPLEX_STREAMED, filter.ProcessingMode_NONE))
	to, _ := c.endpoints()
	c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headers(":status", "200")}}})
	c.next()
	_ = c.stream.CloseSend()
	place := slices.Index(addresses, to[0])
	for range 20 {
		time.Sleep(time.Millisecond)
		f.queued(0, 1)
	}
	f.report(place, link.Report{Version: 1, Ended: []link.Ended{{ID: "boot.1", Service: 2}}})
	f.queued(0, 0)
}

// A picker that starts counts the requests that the agents have, and does not send them more than they take.
func TestTakeover(t *testing.T) {
	f := start(t, nil)
	early := f.ask(askA)
	f.report(0, link.Report{Engines: []link.Engine{{Model: "a", State: agent.Awake, Wanted: true}}, Requests: []link.Request{{ID: "old.1", Model: "a"}}})
	f.report(1, link.Report{Engines: []link.Engine{{Model: "b", State: agent.Awake, Wanted: true}}, Requests: []link.Request{{ID: "old.2", Model: "b"}}})
	time.Sleep(20 * time.Millisecond)
	f.queued(0, 0) // it waits until all agents were asked
	close(f.ready)
	f.queued(1, 0) // both endpoints are full with requests of the earlier picker
	f.report(0, link.Report{Version: 1, Engines: []link.Engine{{Model: "a", State: agent.Awake, Wanted: true}}})
	if to, _ := early.endpoints(); to[0] != addresses[0] {
		t.Errorf("to %q", to)
	}
}

// The data plane names the endpoint that has served: after a retry it is not the first one of the list. Only the protocol's name space counts.
func TestEndpointThatServed(t *testing.T) {
	f := start(t, func(s *settings.Settings) { s.Fallbacks = 1 }).up()
	want := ""
	for _, space := range []string{destinationSpace, "other"} {
		c := f.ask(askA)
		to, _ := c.endpoints()
		c.send(&pb.ProcessingRequest{
			Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headers(":status", "200"), EndOfStream: true}},
			MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{space: {Fields: map[string]*structpb.Value{
				"x-gateway-destination-endpoint-served": structpb.NewStringValue(to[1])}}}},
		})
		if c.next().GetResponseHeaders() == nil {
			t.Error("the headers of the answer do not pass")
		}
		f.queued(0, 0)
		if want == "" {
			want = fmt.Sprintf("medusa_picker_served_total{endpoint=%q} 1\n", to[1])
		}
		var out strings.Builder
		f.Count.Write(&out)
		if !strings.Contains(out.String(), want) || strings.Count(out.String(), "medusa_picker_served_total{") != 1 {
			t.Errorf("metadata in %s: want %s:\n%s", space, want, out.String())
		}
	}
}

// A failed answer does not count as service.
func TestFailedAnswerIsLost(t *testing.T) {
	f := start(t, nil).up()
	c := f.ask(askA)
	c.endpoints()
	c.answer("502", "{}")
	f.queued(0, 0)
	var out strings.Builder
	f.Count.Write(&out)
	if want := fmt.Sprintf("medusa_picker_requests_total{model=%q,code=%q} 1\n", "a", "502"); !strings.Contains(out.String(), want) {
		t.Errorf("metrics lack %s:\n%s", want, out.String())
	}
}
