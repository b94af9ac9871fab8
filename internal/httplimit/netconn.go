package httplimit

import "net"

// NetConn returns the connection below, as that of crypto/tls does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Used is the room that is taken.
func (b *Bodies) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
