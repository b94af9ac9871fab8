package oci

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"medusa/artifacts/bytecode"
)

// precompile makes the layer with the bytecode of an image's Python sources, in a file that remove removes.
func precompile(ctx context.Context, base *remote.Repository, i *image, python string) (a addition, remove func(), err error) {
	remove = func() {}
	m, err := bytecode.New(ctx, python)
	if err != nil {
		return a, remove, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for _, d := range i.layers {
		if err := unpack(ctx, base, d, m); err != nil {
			return a, remove, fmt.Errorf("read layer %s: %w", d.Digest, err)
		}
	}
	f, err := os.CreateTemp("", "medusa-layer-")
	if err != nil {
		return a, remove, err
	}
	remove = func() { _ = f.Close() }
	if err := os.Remove(f.Name()); err != nil { // the open file is enough
		return a, remove, err
	}
	packed, plain := digest.SHA256.Digester(), digest.SHA256.Digester()
	z := gzip.NewWriter(io.MultiWriter(f, packed.Hash()))
	_, err = m.Make(ctx, io.MultiWriter(z, plain.Hash()))
	if err = errors.Join(err, z.Close()); err != nil {
		return a, remove, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	kind := i.layerType() + gzipSuffix(i.mediaType)
	return addition{ocispec.Descriptor{MediaType: kind, Digest: packed.Digest(), Size: size}, plain.Digest(), f}, remove, err
}

// gzipSuffix is the end of a layer's media type if the layer is compressed with gzip.
func gzipSuffix(manifest string) string {
	if manifest == dockerImage {
		return ".gzip"
	}
	return "+gzip"
}

// unpack reads a layer, whose digest is checked.
func unpack(ctx context.Context, base *remote.Repository, d ocispec.Descriptor, m *bytecode.Maker) error {
	body, err := base.Blobs().Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := d.Digest.Verifier()
	layer := io.TeeReader(io.LimitReader(body, d.Size), sum)
	plain, err := decompressed(layer, d.MediaType)
	if err != nil {
		return err
	}
	defer plain.Close()
	if err := m.Add(plain); err != nil {
		return err
	}
	// An archive may end before its file does.
	if _, err := io.Copy(io.Discard, layer); err != nil {
		return err
	}
	// mutant: layers are what their digests say
	if !sum.Verified() {
		return errors.New("its bytes do not match its digest")
	}
	return nil
}

func decompressed(layer io.Reader, mediaType string) (io.ReadCloser, error) {
	switch {
	case strings.HasSuffix(mediaType, "gzip"):
		return gzip.NewReader(layer)
	case strings.HasSuffix(mediaType, "zstd"):
		z, err := zstd.NewReader(layer)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case strings.HasSuffix(mediaType, "tar"):
		return io.NopCloser(layer), nil
	}
	return nil, fmt.Errorf("its media type is %q", mediaType)
}
