package apirequest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"medusa/internal/apierror"
)

// coding is a content coding that clients may use.
type coding struct {
	name string
	open func(*bufio.Reader) (io.Reader, error)
}

// zstdWindow is the largest window that RFC 8878 wants every decoder to have.
const zstdWindow = 8 << 20

var codings = []coding{
	{"gzip", func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"deflate", openDeflate},
	{"br", func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }},
	{"zstd", func(r *bufio.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}},
}

// openDeflate takes both forms that clients send: with zlib's header, as HTTP wants it, and without it.
func openDeflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// Codings lists the codings that are taken, for the header Accept-Encoding.
func Codings() string {
	var list []string
	for _, c := range codings {
		list = append(list, c.name)
	}
	return strings.Join(list, ", ")
}

// codingOf returns the coding of a body; nil if it has none.
func codingOf(header http.Header) (*coding, error) {
	given := strings.ToLower(strings.Join(header.Values("Content-Encoding"), ", "))
	switch given {
	case "", "identity":
		return nil, nil
	case "x-gzip":
		given = "gzip"
	}
	i := slices.IndexFunc(codings, func(c coding) bool { return c.name == given })
	if i < 0 {
		return nil, &apierror.Error{Status: http.StatusUnsupportedMediaType, Kind: apierror.Request, Code: "unsupported_encoding", Param: "Content-Encoding",
			Message: fmt.Sprintf("Content-Encoding is %q; one of %s is taken, or none", given, Codings())}
	}
	return &codings[i], nil
}
