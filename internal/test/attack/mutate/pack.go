package mutate

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"

	"github.com/klauspost/compress/zstd"

	"medusa/artifacts/artifactpb"
)

// Entry is one entry of a bundled directory's archive, as hostile as tar allows.
type Entry struct {
	Name     string
	Linkname string
	Data     string
	Mode     int64
	Type     byte  // of package tar; 0: a file, or a directory if Name ends in a slash
	Size     int64 // as declared, if not that of Data: the archive ends within the entry
}

// Pack makes an archive and returns what a manifest would honestly say about it.
func Pack(entries ...Entry) (data []byte, size, files uint64) {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // of options that are constants
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Linkname: e.Linkname, Mode: e.Mode, Typeflag: e.Type, Size: int64(len(e.Data)), Format: tar.FormatPAX}
		if e.Type == 0 {
			h.Typeflag = tar.TypeReg
			if e.Name != "" && e.Name[len(e.Name)-1] == '/' {
				h.Typeflag = tar.TypeDir
			}
		}
		if e.Size != 0 {
			h.Size = e.Size
		}
		files++
		size += uint64(h.Size)
		if t.WriteHeader(h) != nil {
			raw(z, e) // what tar's writer refuses to write
			continue
		}
		_, _ = t.Write([]byte(e.Data))
	}
	_ = t.Close() // fails after an entry that is shorter than declared
	_ = z.Close()
	return out.Bytes(), size, files
}

// raw writes a header block without asking anybody whether it is allowed.
func raw(z *zstd.Encoder, e Entry) {
	var block [512]byte
	copy(block[:100], e.Name)
	copy(block[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00        0")
	copy(block[257:], "ustar\x0000")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	for i := range 6 {
		block[153-i] = byte('0' + sum>>(3*i)&7)
	}
	block[154] = 0
	_, _ = z.Write(block[:])
}

// Bundled returns the artifact with one bundled directory, whose manifest says what is given.
func (a *Artifact) Bundled(name, path string, data []byte, size, files uint64) ([]byte, error) {
	c := a.clone()
	sum := sha256.Sum256(data)
	c.ranks[0].manifest.Layers = []*artifactpb.Layer{{Name: name, Path: path, Sha256: sum[:], PackedSize: uint64(len(data)), Size: size, Files: files}}
	c.layers = []layer{{sum, data}}
	return c.bytes()
}
