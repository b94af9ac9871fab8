package safetensors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

// Digest identifies the checkpoint: SHA-256 over the size and all bytes of every file.
func (c *Checkpoint) Digest() (string, error) {
	h := sha256.New()
	for _, f := range c.files {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], f.size)
		h.Write(size[:])
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, int64(f.size))); err != nil {
			return "", fmt.Errorf("digest checkpoint: %w", err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
