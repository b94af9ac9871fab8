package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"medusa/internal/cuda"
	"medusa/test/enginekit"
)

// peer is another process, with which the engine shares device memory. ZOO_PEER chooses:
//
//	reads   the peer opens the engine's input and output. It writes the one and reads the other while the engine serves.
//	opened  the engine opens memory of the peer, twice, and closes it once. Its graphs do not use it.
//	graph   the graph fork reads that memory.
//	event   the graph fork records an event of the peer.
//	table   a table of pointers that the graph nested reads leads to it.
type peer struct {
	kind    string
	in      io.WriteCloser
	out     io.Reader
	foreign cuda.DevicePtr
}

const (
	peerSide          = "ZOO_PEER_SIDE"
	eventInterprocess = 4 // CU_EVENT_INTERPROCESS
)

// open starts the other process and shares memory with it.
func (p *peer) open(z *zoo) (err error) {
	if p.kind = os.Getenv("ZOO_PEER"); p.kind == "" {
		return nil
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MEDUSA_") || strings.HasPrefix(v, "LD_PRELOAD=")
	}), peerSide+"=1")
	cmd.Stderr = os.Stderr
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var theirs cuda.IpcMemHandle
	var event cuda.IpcEventHandle
	for _, h := range [][]byte{theirs[:], event[:]} {
		if _, err := io.ReadFull(p.out, h); err != nil {
			return fmt.Errorf("read the peer's handles: %w", err)
		}
	}
	if p.kind == "reads" {
		return p.give(z.input, z.output)
	}
	if p.kind == "event" {
		if z.external, err = event.Open(); err != nil {
			return err
		}
	}
	if p.foreign, err = theirs.Open(); err != nil {
		return err
	}
	again, err := theirs.Open()
	if err != nil || again != p.foreign {
		return fmt.Errorf("open the peer's memory again: %#x, first %#x: %w", uint64(again), uint64(p.foreign), err)
	}
	return again.CloseIpc()
}

func (p *peer) give(memory ...cuda.DevicePtr) error {
	for _, m := range memory {
		h, err := m.IpcHandle()
		if err != nil {
			return err
		}
		if _, err := p.in.Write(h[:]); err != nil {
			return err
		}
	}
	return nil
}

// serve has the peer write the input, replays the graph fork, and returns the output as the peer then reads it. Other kinds return
// the contents of the peer's memory.
func (p *peer) serve(z *zoo) ([]byte, error) {
	host := make([]byte, size)
	switch p.kind {
	case "":
		return nil, nil
	case "reads":
		for _, replay := range []bool{true, false} { // the peer writes, then reads
			if _, err := p.in.Write([]byte{0}); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(p.out, host); err != nil {
				return nil, err
			}
			if replay {
				if err := errors.Join(z.replay(1), z.await(1)); err != nil {
					return nil, err
				}
			}
		}
		return host, nil
	}
	return host, cuda.CopyToHost(host, p.foreign)
}

// beThePeer is the other process: it offers memory, takes handles of an input and an output, writes the one and reads the other.
func beThePeer() error {
	if _, _, err := enginekit.Open(); err != nil {
		return err
	}
	own, err := cuda.MemAlloc(size)
	if err != nil {
		return err
	}
	if err := cuda.CopyToDevice(own, floats(func(k int) float32 { return float32(k%7) / 7 })); err != nil {
		return err
	}
	h, err := own.IpcHandle()
	if err != nil {
		return err
	}
	e, err := cuda.EventCreate(cuda.EventDisableTiming | eventInterprocess)
	if err != nil {
		return err
	}
	eh, err := e.IpcHandle()
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(append(h[:], eh[:]...)); err != nil {
		return err
	}
	var theirs [2]cuda.DevicePtr
	for i := range theirs {
		if _, err := io.ReadFull(os.Stdin, h[:]); err != nil {
			return nil // the engine ends, or shares no memory
		}
		if theirs[i], err = h.Open(); err != nil {
			return err
		}
	}
	host, turnByte := make([]byte, size), make([]byte, 1)
	for turn := uint32(0); ; turn++ {
		if _, err := os.Stdin.Read(turnByte); err != nil {
			return nil
		}
		if turn%2 == 0 {
			err = cuda.CopyToDevice(theirs[0], floats(func(k int) float32 { return float32((k*5+int(turn))%11) / 11 }))
			binary.LittleEndian.PutUint32(host, turn)
		} else {
			err = cuda.CopyToHost(host, theirs[1])
		}
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(host); err != nil {
			return err
		}
	}
}
