package extproc

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"medusa/internal/httplimit"
)

func served(by string) *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{destinationSpace: {Fields: map[string]*structpb.Value{servedKey: structpb.NewStringValue(by)}}}}
}

// Made-up headers of answers leave nothing in memory: no label of an endpoint that is none, and none of a status that is none.
func TestMadeUpAnswersLeaveNothing(t *testing.T) {
	f := start(t, nil).up()
	for i := range 100 {
		stream, err := f.client.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := &call{f: f, stream: stream}
		c.send(&pb.ProcessingRequest{
			Request:         &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headers(":status", "200"), EndOfStream: true}},
			MetadataContext: served(fmt.Sprint(i, strings.Repeat("x", 100_000)))})
		c.next()
	}
	for i := range 5 {
		c := f.ask(askA)
		c.endpoints()
		c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headers(":status", fmt.Sprint(70_000+i)), EndOfStream: true}}})
		c.next()
		f.queued(0, 0)
	}
	var out strings.Builder
	f.Count.Write(&out)
	if strings.Contains(out.String(), "endpoint=") || strings.Contains(out.String(), `code="7000`) {
		t.Errorf("labels are made up: %d bytes of metrics, %.300s", out.Len(), out.String())
	}
}

// An endpoint that has left takes its label with it.
func TestLabelsLeave(t *testing.T) {
	c := NewCounters()
	c.served("10.0.0.1:1")
	c.Left("10.0.0.1:1")
	if len(c.by) != 0 {
		t.Errorf("labels %v", c.by)
	}
}

// A request that no endpoint can answer is refused before its body has come.
func TestHeadIsJudgedFirst(t *testing.T) {
	f := start(t, nil).up()
	for name, head := range map[string]*core.HeaderMap{
		"404": headers(":method", "POST", ":path", "/v1/other"),
		"400": headers(":method", "POST", "content-type", "application/json", ":path", "/v1/completions", "x-medusa-deadline", "-1"),
	} {
		stream, err := f.client.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := &call{f: f, stream: stream}
		c.send(&pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{Headers: head}}})
		answer := make(chan string)
		go func() {
			r, err := c.stream.Recv()
			answer <- fmt.Sprint(int32(r.GetImmediateResponse().GetStatus().GetCode()), err)
		}()
		select {
		case got := <-answer:
			if got != name+" <nil>" {
				t.Errorf("%s, want %s", got, name)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the picker waits for the body", name)
		}
	}
}

// The bodies of all requests share a bound. A request gives its part back once its body was sent on.
func TestBodiesShareABound(t *testing.T) {
	f := start(t, nil).up()
	f.Bodies = httplimit.NewBodies(300_000)
	long := `{"model": "a", "prompt": "` + strings.Repeat("x", 200_000) + `"}`
	c := f.ask(long)
	c.endpoints() // it has its turn
	d := f.ask(long)
	f.queued(0, 2) // so has the next one
	d.endpoints()
	e := f.ask(long)
	f.queued(1, 2)
	g := f.ask(long)
	if r := g.next().GetImmediateResponse(); r.GetStatus().GetCode() != http.StatusServiceUnavailable || !strings.Contains(string(r.GetBody()), "busy") {
		t.Errorf("a body beyond the bound: %v", r)
	}
	c.answer("200", "ok")
	e.endpoints()
	e.answer("200", "ok")
	d.answer("200", "ok")
	f.queued(0, 0)
}

// A request that never becomes complete ends.
func TestSlowRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		began := time.Now()
		err := s.read(make(chan *pb.ProcessingRequest), &query{})
		if e := classify(err); e.Status != http.StatusRequestTimeout || time.Since(began) != readTime {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestIncompleteRequestsAreBounded(t *testing.T) {
	s := &Server{}
	for range maxReading {
		if !s.enter() {
			t.Fatal("a request within the bound is refused")
		}
	}
	if s.enter() {
		t.Error("no bound for requests that are not complete")
	}
	s.exit()
	if !s.enter() {
		t.Error("the place of a request is lost")
	}
}
