package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errLeft means that the client has left.
var errLeft = errors.New("the client has left")

// line is a connection of a client. It can find out whether a client that sends nothing more has only said so (shutdown) or has left (close):
// to this side both look alike until something is sent.
type line struct {
	net.Conn
	mu    sync.Mutex
	begun bool // something was sent since the request came
}

type lineKey struct{}

// lined makes each connection of a listener a line.
type lined struct{ net.Listener }

// Accept implements [net.Listener].
func (l lined) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &line{Conn: c}, nil
}

func withLine(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, lineKey{}, c)
}

func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.begun = true
	l.mu.Unlock()
	return l.Conn.Write(p)
}

// CloseWrite lets the server end an answer in order, as with the connection itself.
func (l *line) CloseWrite() error {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// asked begins a request.
func (l *line) asked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = false
}

// probe sends an interim answer, which clients read over, unless the answer has begun. A client that has left refuses it.
func (l *line) probe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		_, _ = l.Conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}

// tcpClose is the state of a connection that the other side has refused or left (TCP_CLOSE of Linux).
const tcpClose = 7

// refused reports whether the client's side of the connection is gone.
func (l *line) refused() bool {
	c, ok := under(l.Conn).(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	gone := true
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		gone = err != nil || info.State == tcpClose
	})
	return gone
}

// under is the connection that a limited one wraps.
func under(c net.Conn) net.Conn {
	if u, ok := c.(interface{ NetConn() net.Conn }); ok {
		return u.NetConn()
	}
	return c
}

// The times between two looks at a connection whose client sends nothing more, and between two probes.
const (
	firstLook  = 20 * time.Millisecond
	lastLook   = time.Second
	probeEvery = 15 * time.Second
)

// present returns a context that ends with [errLeft] when the client has left, and after the limit. A client that only sends nothing more is present:
// net/http takes both for leaving. HTTP/1.0 has no interim answer to ask with, so such a client counts as one that has left.
func present(r *http.Request, limit time.Duration) (context.Context, context.CancelFunc) {
	whole, left := context.WithCancelCause(context.WithoutCancel(r.Context()))
	ctx, cancel := context.WithTimeout(whole, limit)
	l, _ := r.Context().Value(lineKey{}).(*line)
	if l != nil {
		l.asked()
	}
	stop := context.AfterFunc(r.Context(), func() {
		// mutant: clients that send nothing more
		if l == nil || r.ProtoMajor != 1 || r.ProtoMinor == 0 {
			left(errLeft)
			return
		}
		var probed time.Time
		for look := firstLook; ; look = min(2*look, lastLook) {
			if l.refused() {
				left(errLeft)
				return
			}
			if time.Since(probed) > probeEvery {
				l.probe()
				probed = time.Now()
			}
			select {
			case <-time.After(look):
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, func() { stop(); cancel(); left(nil) }
}
