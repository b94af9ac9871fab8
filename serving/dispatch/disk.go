package dispatch

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrBehind means that the disk is slower than the decisions.
var ErrBehind = errors.New("the disk is too slow")

// Disk writes a log without making decisions wait: a goroutine writes the lines in order. If a write fails, or if too many pieces wait, the
// log ends, so that it has no gap.
type Disk struct {
	pieces chan []byte
	done   chan struct{}
	failed func(error)

	mu  sync.Mutex
	err error // the first
}

// maxPieces bounds the pieces that wait to be written. A piece is a line, or several that take 4 KiB together.
const maxPieces = 4096

// NewDisk begins to write to w. failed is called once, by any goroutine, if the log ends early.
func NewDisk(w io.Writer, failed func(error)) *Disk {
	d := &Disk{pieces: make(chan []byte, maxPieces), done: make(chan struct{}), failed: failed}
	go func() {
		defer close(d.done)
		for p := range d.pieces {
			if d.error() != nil {
				continue
			}
			if _, err := w.Write(p); err != nil {
				d.end(err)
			}
		}
	}()
	return d
}

// Write takes a copy of p.
func (d *Disk) Write(p []byte) (int, error) {
	if err := d.error(); err != nil {
		return 0, err
	}
	select {
	case d.pieces <- bytes.Clone(p):
		return len(p), nil
	default:
		// mutant: a disk that is too slow
		d.end(ErrBehind)
		return 0, ErrBehind
	}
}

// Close waits until all is written, and returns the first error. No line may follow.
func (d *Disk) Close() error {
	close(d.pieces)
	<-d.done
	return d.error()
}

func (d *Disk) error() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *Disk) end(err error) {
	d.mu.Lock()
	first := d.err == nil
	if first {
		d.err = err
	}
	d.mu.Unlock()
	if first {
		d.failed(err)
	}
}
