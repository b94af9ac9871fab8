package apirequest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"medusa/internal/apierror"
)

// A coded body has at most maxRatio bytes for each byte that came, beyond the first free ones. Text seldom has more than 20.
const (
	maxRatio = 100
	free     = 4 << 20
)

// decoders bounds the decoders at work. One for zstd takes up to 16 MiB.
var decoders = make(chan struct{}, 2)

// Decode decodes a body into another place. It reports false if the body has no encoding. Errors of the place are returned as they are.
func Decode(header http.Header, coded []byte, to io.ReaderFrom) (bool, error) {
	c, err := codingOf(header)
	if err != nil || c == nil {
		return false, err
	}
	decoders <- struct{}{}
	defer func() { <-decoders }()
	d := &decoding{coding: c, size: int64(len(coded)), from: bufio.NewReader(bytes.NewReader(coded))}
	if len(coded) == 0 { // zstd takes it for no frame
		return true, d.broken(io.ErrUnexpectedEOF)
	}
	if d.to, err = c.open(d.from); err != nil {
		return true, d.broken(err)
	}
	if closer, ok := d.to.(io.Closer); ok {
		defer closer.Close()
	}
	_, err = to.ReadFrom(d)
	return true, err
}

// decoding is a body that is being decoded.
type decoding struct {
	coding *coding
	size   int64 // of the coded body
	n      int64 // decoded bytes
	from   *bufio.Reader
	to     io.Reader
}

func (d *decoding) broken(err error) error {
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "invalid_encoding", Param: "Content-Encoding",
		Message: fmt.Sprintf("decode %s body: %v", d.coding.name, err)}
}

func (d *decoding) Read(p []byte) (int, error) {
	n, err := d.to.Read(p)
	d.n += int64(n)
	// mutant: bodies that grow beyond measure
	if d.n > free+maxRatio*d.size {
		return n, &apierror.Error{Status: http.StatusRequestEntityTooLarge, Kind: apierror.Request, Code: "request_too_large",
			Message: fmt.Sprintf("the body has %d bytes, and more than %d when it is decoded", d.size, free+maxRatio*d.size)}
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, d.broken(err)
	}
	if _, err := d.from.ReadByte(); err == nil {
		return n, d.broken(errors.New("something follows its end"))
	}
	return n, io.EOF
}
