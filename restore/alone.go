package restore

import (
	"errors"
	"fmt"
	"slices"

	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// A rank can be recorded and verified on a machine that has room for it alone: no node of a communicator is in an artifact. The engine then makes no
// communicator, and asks the session for a local operation in place of each call. What it captures has the same holes, and the graphs compute
// something of the same shape, in which all results still depend on this rank's data.

// alone reports whether this process is one of several ranks, with no other one running. It never is in a start that serves.
func (e *environment) alone() bool {
	return e.Peers != "" && e.Run != contract.RunRestore
}

// checkPeers refuses a start without peers that would serve, or that has no peers to do without.
func (e *environment) checkPeers() error {
	switch {
	case e.Peers == "":
		return nil
	// mutant: start that serves alone
	case e.Run == contract.RunRestore:
		return errors.New("read " + contract.EnvPeers + ": a start that serves has all its ranks (only medusa materialize --ranks-alone sets it)")
	case !e.rank.several():
		return errors.New("read " + contract.EnvPeers + ": this process is not one of several ranks (set " + contract.EnvRank + " and " + contract.EnvWorldSize + ")")
	}
	return nil
}

// Alone reports whether this process is one of several ranks, with no other one running. The engine then makes no communicator, and calls StandIn
// in place of each of its calls.
func (s *Session) Alone() bool { return s.env.alone() }

// StandIn puts a local operation on the stream, in place of a call of the engine's communicator. Results have this rank's data in place of the
// others'.
func (s *Session) StandIn(call *contract.Collective, stream cuda.Stream) (err error) {
	defer s.caught(&err)
	if !s.env.alone() {
		return errors.New("stand in for a collective call: the other ranks are running (make the call)")
	}
	made, err := standIn(call, s.env.rank)
	if err != nil {
		return fmt.Errorf("stand in for a collective call: %w", err)
	}
	graph, _, err := stream.Captured()
	if err != nil {
		return fmt.Errorf("stand in for a collective call: %w", err)
	}
	capturing := graph != 0
	if !capturing && s.env.Run == contract.RunCheckRestored && s.restored == nil {
		if err := s.peers.add(call, live.Allocations); err != nil {
			return fmt.Errorf("stand in for a collective call: %w", err)
		}
	}
	for _, c := range made {
		// mutant: other data from peers in the second recording
		if c.ofPeer && !capturing && s.env.Peers == contract.PeersOther {
			err = otherData(c.to, c.size, stream)
		} else if c.to != c.from {
			err = cuda.CopyOnDeviceAsync(c.to, c.from, c.size, stream)
		}
		if err != nil {
			return fmt.Errorf("stand in for a collective call: %w", err)
		}
	}
	if capturing && !anyMoves(made) {
		// The call has to be a node. One that does nothing needs no memory, and keeps the order.
		err = stream.CaptureEmptyNode()
	}
	return err
}

// otherData fills memory with what no rank is likely to send: a one in the lowest byte of every eight. As numbers of any type they are so small that an engine
// can use them, as indices too.
func otherData(to cuda.DevicePtr, size uint64, stream cuda.Stream) error {
	const word = 8
	if err := cuda.MemsetAsync(to, 0, size, stream); err != nil {
		return err
	}
	return cuda.MemsetD2D8Async(to, word, 1, 1, (size+word-1)/word, stream)
}

// piece is a part of a call's result, and the data of this rank that it gets.
type piece struct {
	to, from cuda.DevicePtr
	size     uint64
	ofPeer   bool // with peers, the part would depend on their data
}

func anyMoves(pieces []piece) bool {
	for _, p := range pieces {
		if p.to != p.from {
			return true
		}
	}
	return false
}

// standIn says where the parts of a result come from. The engine's number of the operation has no meaning here, but the sizes of its buffers tell: as many
// bytes are received as sent (reduce, broadcast), a multiple (gather), or a part (scatter).
func standIn(c *contract.Collective, r rank) ([]piece, error) {
	send, recv := cuda.DevicePtr(c.Send), cuda.DevicePtr(c.Recv)
	gathers := c.SendBytes != 0 && c.RecvBytes >= c.SendBytes && c.RecvBytes%c.SendBytes == 0
	scatters := c.RecvBytes != 0 && c.SendBytes > c.RecvBytes && c.SendBytes%c.RecvBytes == 0
	switch {
	case c.Send == 0 || c.Recv == 0 || !gathers && !scatters:
		return nil, fmt.Errorf("%d bytes at %#x are sent, %d at %#x received (supported: buffers of equal size, or one a multiple of the other)",
			c.SendBytes, c.Send, c.RecvBytes, c.Recv)
	case scatters:
		own := slot(send, recv, c.SendBytes, c.RecvBytes, r)
		return []piece{{recv, send + cuda.DevicePtr(own*c.RecvBytes), c.RecvBytes, true}}, nil
	}
	slots := c.RecvBytes / c.SendBytes
	own := slot(recv, send, c.RecvBytes, c.SendBytes, r)
	var all []piece
	for i := range slots {
		all = append(all, piece{recv + cuda.DevicePtr(i*c.SendBytes), send, c.SendBytes, slots == 1 || i != own})
	}
	return all, nil
}

// slot is this rank's part of a buffer: where the other buffer lies in it, if it does, or else the place of the rank.
func slot(buffer, other cuda.DevicePtr, size, part uint64, r rank) uint64 {
	if offset := uint64(other - buffer); other >= buffer && offset < size && offset%part == 0 {
		return offset / part
	}
	return uint64(r.index) % (size / part)
}

// peers is the engine's memory that has received results of calls outside of captures, before there were graphs. With all ranks running, it holds other data.
type peers map[uint64]uint64 // size by address

// add leaves out memory of triggering layers, which is in no map: its addresses may be those of other memory later.
func (p *peers) add(c *contract.Collective, allocations func() ([]live.Alloc, error)) error {
	all, err := allocations()
	// mutant: results in memory of triggering layers
	if slices.ContainsFunc(all, func(a live.Alloc) bool { return a.Live != 0 && c.Recv >= a.Addr && c.Recv-a.Addr < a.Size }) {
		if *p == nil {
			*p = peers{}
		}
		(*p)[c.Recv] = max((*p)[c.Recv], c.RecvBytes)
	}
	return err
}

// reach reports whether some of the memory lies in a range.
func (p peers) reach(addr, size uint64) bool {
	for at, n := range p {
		if at < addr+size && addr < at+n {
			return true
		}
	}
	return false
}
