package httplimit

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// Bodies are all bodies that are in memory.
type Bodies struct {
	most int64

	mu   sync.Mutex
	used int64
}

// NewBodies makes room for bodies of so many bytes together.
func NewBodies(most int64) *Bodies { return &Bodies{most: most} }

// ErrFull means that the bodies of other requests have taken the room for all.
var ErrFull = errors.New("read body: requests in progress take all memory for bodies (try again)")

// take takes room for bytes, or gives it back.
func (b *Bodies) take(bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	// mutant: the bound of all bodies
	if bytes > 0 && b.used+bytes > b.most {
		return ErrFull
	}
	b.used += bytes
	return nil
}

// Body is the body of a request. It takes room as its bytes arrive, so that a client takes no more than it has sent. One goroutine may use
// it at a time.
type Body struct {
	all  *Bodies
	most int64
	data []byte
}

// New makes an empty body for at most so many bytes.
func (b *Bodies) New(most int64) *Body { return &Body{all: b, most: most} }

// Bytes returns the bytes so far.
func (d *Body) Bytes() []byte { return d.data }

// Append adds a part.
func (d *Body) Append(part []byte) error {
	if int64(len(d.data))+int64(len(part)) > d.most {
		return &http.MaxBytesError{Limit: d.most}
	}
	if err := d.grow(len(part)); err != nil {
		return err
	}
	d.data = append(d.data, part...)
	return nil
}

// minRoom is the room of the shortest body.
const minRoom = 4 << 10

// grow makes room for more bytes.
func (d *Body) grow(bytes int) error {
	need, had := len(d.data)+bytes, cap(d.data)
	if need <= had {
		return nil
	}
	room := max(need, min(2*had, int(d.most)), minRoom)
	if err := d.all.take(int64(room - had)); err != nil {
		return err
	}
	d.data = append(make([]byte, 0, room), d.data...)
	return nil
}

// ReadFrom implements [io.ReaderFrom]. It reads no more than the body may have, and one byte.
func (d *Body) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		if err := d.grow(1); err != nil {
			return n, err
		}
		m, err := r.Read(d.data[len(d.data):cap(d.data)])
		d.data, n = d.data[:len(d.data)+m], n+int64(m)
		switch {
		case int64(len(d.data)) > d.most:
			return n, &http.MaxBytesError{Limit: d.most}
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// Release gives the room back. The bytes must not be used any more.
func (d *Body) Release() {
	_ = d.all.take(-int64(cap(d.data)))
	d.data = nil
}
