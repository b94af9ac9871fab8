package safetensors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

// Files up to wholeLimit bytes go into the digest as a whole; of larger ones samples blocks of sampleSize bytes do, spread
// evenly from the first to the last. Reading tens of gigabytes would take longer than the start that the digest protects.
const (
	wholeLimit = 64 << 20
	samples    = 256
	sampleSize = 64 << 10
)

// Digest identifies the checkpoint: SHA-256 over every file's size, header and contents. The contents of a file above
// 64 MiB are sampled (256 blocks of 64 KiB, evenly spaced, the last one included): files that differ only between the
// samples and have the same header and size are not told apart.
func (c *Checkpoint) Digest() (string, error) {
	h := sha256.New()
	for _, f := range c.files {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], f.size)
		h.Write(size[:])
		h.Write(f.header)
		if err := digestContents(h, f, f.size); err != nil {
			return "", fmt.Errorf("digest checkpoint: %w", err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func digestContents(w io.Writer, r io.ReaderAt, size uint64) error {
	if size <= wholeLimit {
		_, err := io.Copy(w, io.NewSectionReader(r, 0, int64(size)))
		return err
	}
	last := size - sampleSize
	for i := range uint64(samples) {
		// last*i would overflow for no file that fits on a disk: 2^64/256 is 64 petabytes.
		at := last * i / (samples - 1)
		if _, err := io.Copy(w, io.NewSectionReader(r, int64(at), sampleSize)); err != nil {
			return err
		}
	}
	return nil
}
