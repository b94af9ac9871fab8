package httplimit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// listen serves a handler with limits, and returns its address.
func listen(t *testing.T, limits Limits, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(New(limits).Listen(l)) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answered reports whether a request on a connection gets an answer.
func answered(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	b := make([]byte, 12)
	_, err := io.ReadFull(c, b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a connection has neither an answer nor an end")
	}
	return err == nil && string(b) == "HTTP/1.1 200"
}

func TestConnectionsAreBounded(t *testing.T) {
	at := listen(t, Limits{Connections: 5, Client: 3, Stall: time.Minute}, func(http.ResponseWriter, *http.Request) {})
	var mine []net.Conn
	for range 3 {
		c := dial(t, "127.0.0.1", at)
		if !answered(t, c) {
			t.Fatal("a connection within the limits has no answer")
		}
		mine = append(mine, c)
	}
	if answered(t, dial(t, "127.0.0.1", at)) {
		t.Error("a client has a connection too many")
	}
	for i := range 3 {
		if got := answered(t, dial(t, "127.0.0.2", at)); got != (i < 2) {
			t.Errorf("connection %d of another client: %v, five are allowed in all", i, got)
		}
	}
	_ = mine[0].Close()
	for end := time.Now().Add(20 * time.Second); !answered(t, dial(t, "127.0.0.1", at)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the place of a closed connection is lost")
		}
	}
}

func TestClients(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.1": "10.0.0.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64"} {
		if got := client(&net.TCPAddr{IP: net.ParseIP(address), Port: 1}).String(); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}

// A client that never reads loses its connection, also if the handler sets a later deadline. One that reads slowly gets its answer.
func TestWritesEnd(t *testing.T) {
	ended := make(chan error, 1)
	const size = 32 << 20
	at := listen(t, Limits{Connections: 9, Client: 9, Stall: 200 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
		_, err := w.Write(make([]byte, size))
		ended <- err
	})
	wait := func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			t.Fatal("an answer waits for ever")
		}
		return nil
	}
	c := dial(t, "127.0.0.1", at)
	_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 3)) // it pipelines, too
	if err := wait(); err == nil {
		t.Error("an answer that nobody has read was written")
	}
	slow := dial(t, "127.0.0.1", at)
	_, _ = io.WriteString(slow, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	read := 0
	for b := make([]byte, 1<<20); ; time.Sleep(20 * time.Millisecond) { // longer than a stall in all
		n, err := slow.Read(b)
		if read += n; err != nil {
			break
		}
	}
	if err := wait(); err != nil || read < size {
		t.Errorf("a slow client got %d bytes: %v", read, err)
	}
}

// The handler's own deadline counts if it is the earlier one.
func TestEarlierDeadline(t *testing.T) {
	ended := make(chan time.Duration, 1)
	at := listen(t, Limits{Connections: 9, Client: 9, Stall: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		_ = http.NewResponseController(w).SetWriteDeadline(began.Add(100 * time.Millisecond))
		_, _ = w.Write(make([]byte, 32<<20))
		ended <- time.Since(began)
	})
	_, _ = io.WriteString(dial(t, "127.0.0.1", at), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the handler's deadline does not count")
	}
}

func TestBodiesShareABound(t *testing.T) {
	all := NewBodies(100 << 10)
	var large *http.MaxBytesError
	for _, size := range []int{0, 1, 4095, 4096, 4097, 50_000} {
		text := bytes.Repeat([]byte("x"), size)
		d := all.New(50_000)
		if n, err := d.ReadFrom(bytes.NewReader(text)); err != nil || n != int64(size) || !bytes.Equal(d.Bytes(), text) {
			t.Errorf("%d bytes: %d, %v", size, n, err)
		}
		d.Release()
		d = all.New(50_000)
		for part := range slices.Chunk(text, 999) {
			if err := d.Append(part); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(d.Bytes(), text) {
			t.Errorf("%d bytes in parts are %d", size, len(d.Bytes()))
		}
		d.Release()
	}
	d := all.New(50_000)
	if _, err := d.ReadFrom(strings.NewReader(strings.Repeat("x", 50_001))); !errors.As(err, &large) || large.Limit != 50_000 {
		t.Errorf("a body that is too large: %v", err)
	}
	if err := d.Append(make([]byte, 50_001)); !errors.As(err, &large) {
		t.Errorf("a part that is too large: %v", err)
	}
	d.Release()
	// A body of two takes the room of its bytes, not of the length that its client announces.
	one, two := all.New(1<<20), all.New(1<<20)
	if err := one.Append(make([]byte, 90<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := two.ReadFrom(bytes.NewReader(make([]byte, 90<<10))); !errors.Is(err, ErrFull) {
		t.Errorf("bodies of 180 KiB have 100 KiB together: %v", err)
	}
	two.Release()
	one.Release()
	if _, err := two.ReadFrom(bytes.NewReader(make([]byte, 60<<10))); err != nil {
		t.Errorf("the room of ended requests is lost: %v", err)
	}
	two.Release()
	if all.used != 0 {
		t.Errorf("%d bytes are lost", all.used)
	}
}

// A body that breaks off is an error, with the bytes so far.
func TestBodyBreaksOff(t *testing.T) {
	d := NewBodies(1 << 20).New(1 << 20)
	broken := errors.New("broken")
	if n, err := d.ReadFrom(io.MultiReader(strings.NewReader("abc"), errReader{broken})); !errors.Is(err, broken) || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
