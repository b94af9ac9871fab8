package apirequest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"

	"medusa/internal/apierror"
)

// Limits bound a body.
type Limits struct {
	Bytes int64 // of the decoded body
	// Take asks for more memory; its error ends the reading. All of it is for the body and what decodes it.
	Take func(bytes int64) error
}

// A coded body has at most maxRatio bytes for each byte that came, beyond the first free ones. Text seldom has more than 20.
const (
	maxRatio = 200
	free     = 4 << 20
)

// firstPart is the memory that a body takes at first.
const firstPart = 8 << 10

// TooLarge is the error of a body that exceeds a limit.
func TooLarge(format string, args ...any) *apierror.Error {
	return &apierror.Error{Status: http.StatusRequestEntityTooLarge, Kind: apierror.Request, Code: "request_too_large", Message: fmt.Sprintf(format, args...)}
}

// Decode reads a body and decodes it. size is the length that the client announced, or less than 0. Errors of src itself are returned as they are.
func Decode(src io.Reader, header http.Header, size int64, l Limits) ([]byte, error) {
	c, err := codingOf(header)
	if err != nil {
		return nil, err
	}
	if size > l.Bytes {
		return nil, TooLarge("the body has more than %d bytes", l.Bytes)
	}
	if c == nil {
		return readAll(src, size, l, func(int64) error { return nil })
	}
	if err := l.Take(c.memory); err != nil {
		return nil, err
	}
	from := &counter{from: src}
	buffered := bufio.NewReader(from)
	broken := func(err error) error {
		if from.err != nil {
			return from.err
		}
		return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "invalid_encoding", Param: "Content-Encoding",
			Message: fmt.Sprintf("decode %s body: %v", c.name, err)}
	}
	decoder, err := c.open(buffered)
	if err != nil {
		return nil, broken(err)
	}
	if closer, ok := decoder.(io.Closer); ok {
		defer closer.Close()
	}
	body, err := readAll(decoder, -1, l, func(decoded int64) error {
		// mutant: bodies that grow beyond measure
		if from.n > l.Bytes || decoded > free+maxRatio*from.n {
			return TooLarge("the body grows from %d bytes to more than %d", from.n, decoded)
		}
		return nil
	})
	var known *apierror.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, broken(err)
	case from.n == 0: // zstd takes it for no frame
		return nil, broken(io.ErrUnexpectedEOF)
	}
	if _, err := buffered.ReadByte(); err == nil {
		return nil, broken(errors.New("something follows its end"))
	} else if from.err != nil {
		return nil, from.err
	}
	return body, nil
}

// readAll reads until the end. check is told the number of bytes after each part.
func readAll(r io.Reader, size int64, l Limits, check func(int64) error) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			// One more byte than announced, so that the end is seen without another step.
			more := max(2*int64(cap(body)), firstPart)
			if size >= int64(cap(body)) {
				more = min(more, size+1)
			}
			// mutant: memory of bodies
			if err := l.Take(more - int64(cap(body))); err != nil {
				return nil, err
			}
			grown := make([]byte, len(body), more)
			copy(grown, body)
			body = grown
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > l.Bytes {
			return nil, TooLarge("the body has more than %d bytes", l.Bytes)
		}
		if err := check(int64(len(body))); err != nil {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// counter counts the bytes of a reader, and keeps its error.
type counter struct {
	from io.Reader
	n    int64
	err  error // but for the end
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}
