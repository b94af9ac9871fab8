package httplimit

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits bound connections.
type Limits struct {
	Connections int           // of all clients
	Client      int           // of one client: an IPv4 address, or the first half of an IPv6 address
	Stall       time.Duration // for which a client may not read while an answer waits for it
}

// Connections counts the connections of one listener or several, which share its limits.
type Connections struct {
	limits Limits

	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int
}

// New makes a Connections without any.
func New(limits Limits) *Connections { return &Connections{limits: limits, of: map[netip.Prefix]int{}} }

// Listen returns a listener with the limits. A handler need not set a write deadline; if it sets one, the earlier of the two counts.
func (c *Connections) Listen(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	all *Connections
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who := client(c.RemoteAddr())
		if l.all.enter(who) {
			return &conn{Conn: c, stall: l.all.limits.Stall, leave: sync.OnceFunc(func() { l.all.exit(who) })}, nil
		}
		_ = c.Close()
	}
}

// client is the network that counts as one client. Clients of a Unix socket have none.
func client(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits /= 2
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

func (c *Connections) enter(who netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	// mutant: connections of a client
	if c.all >= c.limits.Connections || who.IsValid() && c.of[who] >= c.limits.Client {
		return false
	}
	c.all++
	c.of[who]++
	return true
}

func (c *Connections) exit(who netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[who]--; c.of[who] == 0 {
		delete(c.of, who)
	}
}

// conn is a connection whose writes end.
type conn struct {
	net.Conn
	stall time.Duration
	leave func()

	mu    sync.Mutex
	until time.Time // the deadline that the server has set; zero: none
}

// maxWrite bounds the bytes that have to pass within one stall.
const maxWrite = 64 << 10

func (c *conn) Write(p []byte) (n int, err error) {
	for {
		if err := c.extend(); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(len(p), n+maxWrite)])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

func (c *conn) extend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := time.Now().Add(c.stall)
	if !c.until.IsZero() && c.until.Before(end) {
		end = c.until
	}
	// mutant: clients that never read
	return c.Conn.SetWriteDeadline(end)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.until = t
	c.mu.Unlock()
	return c.extend()
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets the server end an answer in order, as with the connection itself.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
