package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/serving/agent/link"
)

// dial connects to a GPU's port.
func (f *nodeFixture) dial(gpu int) net.Conn {
	f.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(f.urls[gpu], "http://"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// begin sends the head of a request with a body, and some of the body.
func begin(c net.Conn, ticket string, length int, body string) {
	_, _ = fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s", link.HeaderTicket, ticket, length, body)
}

// statusOf reads the status of an answer.
func statusOf(t *testing.T, c net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// A request without a ticket, or for a model that is not here, is refused before its body has come.
func TestNodeJudgesTicketsFirst(t *testing.T) {
	f := startNode(t, nil)
	for name, row := range map[string]struct {
		ticket string
		want   int
	}{"no ticket": {"x", http.StatusUnauthorized}, "another model": {f.secret.Ticket("p.1", "unknown", time.Now().Add(time.Minute)), http.StatusNotFound}} {
		c := f.dial(0)
		begin(c, row.ticket, 4<<20, "{")
		if got := statusOf(t, c); got != row.want {
			t.Errorf("%s: status %d", name, got)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection goes on in the middle of a body", name)
		}
	}
}

// Connections without tickets take little memory, whatever they send.
func TestNodeMemoryOfStrangers(t *testing.T) {
	f := startNode(t, nil)
	part := make([]byte, 4<<20-1)
	var before runtime.MemStats
	runtime.GC() // other tests have left memory
	runtime.ReadMemStats(&before)
	var most uint64
	stop, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for m := (runtime.MemStats{}); ; time.Sleep(10 * time.Millisecond) {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var all sync.WaitGroup
	for range 250 {
		c := f.dial(0)
		all.Go(func() {
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			begin(c, "x", 4<<20, "")
			_, _ = c.Write(part)
			_, _ = io.Copy(io.Discard, c)
		})
	}
	all.Wait()
	close(stop)
	<-sampled
	if most > before.HeapAlloc+100<<20 {
		t.Errorf("250 connections without tickets take %d MiB", (most-before.HeapAlloc)>>20)
	}
}

// The bodies of all requests share a bound, also those that are still on their way. A request beyond it is refused, and may come again.
func TestNodeBodiesShareABound(t *testing.T) {
	f := startNode(t, nil)
	rest := f.bodies.New(bodyRoom)
	full := func() bool { return rest.Append(make([]byte, bodyRoom)) != nil }
	c := f.dial(0)
	begin(c, f.secret.Ticket("p.1", "m0", time.Now().Add(time.Minute)), 4<<20, strings.Repeat(" ", 3<<20))
	eventually(t, "a body takes no room", func() bool {
		if full() {
			return true
		}
		rest.Release()
		return false
	})
	_ = c.Close()
	eventually(t, "the room of a request that has left is lost", func() bool { return !full() })
	if got, body, h := f.ask(t.Context(), 1, "p.2", "m0", "x"); got != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || !strings.Contains(body, "busy") {
		t.Errorf("without room: %d %s", got, body)
	}
	rest.Release()
	if got, body, _ := f.ask(t.Context(), 1, "p.3", "m0", "x"); got != http.StatusOK {
		t.Errorf("with room again: %d %s", got, body)
	}
}

// All GPUs' ports share the bound of a client's connections.
func TestNodeBoundsConnections(t *testing.T) {
	defer func(before int) { nodeLimits.Client = before }(nodeLimits.Client)
	nodeLimits.Client = 4
	f := startNode(t, nil)
	for i := range 6 {
		c := f.dial(i % 2)
		_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err := http.ReadResponse(bufio.NewReader(c), nil)
		if (err == nil) != (i < 4) {
			t.Errorf("connection %d of four: %v", i+1, err)
		}
	}
}

// A client that sends requests and never reads loses its connection.
func TestNodeClientThatNeverReads(t *testing.T) {
	defer func(before time.Duration) { nodeLimits.Stall = before }(nodeLimits.Stall)
	nodeLimits.Stall = 200 * time.Millisecond
	f := startNode(t, nil)
	c := f.dial(0)
	requests := []byte(strings.Repeat("GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 1000))
	for {
		if _, err := c.Write(requests); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("its connection stays")
		} else if err != nil {
			return
		}
	}
}

// An agent answers questions for its own addresses: those that are configured, or where it listens. If it listens everywhere, these are the machine's,
// without those that each machine has.
func TestNodeAddresses(t *testing.T) {
	all := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::]:9101"))
	k := &card{node: &Node{spec: &Spec{Agent: &Remote{}}}, at: all}
	own := k.addresses()
	if slices.ContainsFunc(own, func(a netip.AddrPort) bool { return a.Addr().IsLoopback() || a.Port() != 9101 }) {
		t.Errorf("everywhere: %v", own)
	}
	// The address that the system uses on the way to another machine is one of them. No packet is sent.
	if c, err := net.Dial("udp", "192.0.2.1:9"); err == nil {
		used := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		if _ = c.Close(); !used.IsLoopback() && !slices.Contains(own, netip.AddrPortFrom(used, 9101)) {
			t.Errorf("everywhere: %v, without %v", own, used)
		}
	}
	k.at = net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::ffff:10.0.0.1]:9101"))
	if own := k.addresses(); fmt.Sprint(own) != "[10.0.0.1:9101]" {
		t.Errorf("at one address: %v", own)
	}
	k.node.spec.Agent.Advertise = []string{"10.0.0.2:80"}
	if own := k.addresses(); fmt.Sprint(own) != "[10.0.0.2:80]" {
		t.Errorf("configured: %v", own)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}
