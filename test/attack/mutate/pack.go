package mutate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"

	"medusa/artifacts/artifactpb"
)

// Entry is one entry of a bundled directory's archive, as hostile as the format allows: package archive/tar would refuse to
// write many of them.
type Entry struct {
	Name     string
	Linkname string
	Data     string
	Mode     int64
	Type     byte   // '0' a file, '1' a hard link, '2' a symbolic link, '3' a device, '5' a directory; 0: '0' or '5'
	Size     uint64 // as declared, if not that of Data
	Pax      [][2]string
}

// Pack makes an archive and returns an honest manifest of it.
func Pack(entries ...Entry) (data []byte, size, files uint64) {
	var tar bytes.Buffer
	for _, e := range entries {
		if e.Type == 0 {
			e.Type = '0'
			if strings.HasSuffix(e.Name, "/") {
				e.Type = '5'
			}
		}
		if e.Size == 0 {
			e.Size = uint64(len(e.Data))
		}
		files++
		size += e.Size
		if len(e.Name) > 99 {
			e.Pax = append(e.Pax, [2]string{"path", e.Name})
		}
		if records := ""; len(e.Pax) > 0 {
			for _, kv := range e.Pax {
				records += paxRecord(kv[0], kv[1])
			}
			entry(&tar, Entry{Name: "pax", Type: 'x', Size: uint64(len(records)), Data: records, Mode: 0o644})
		}
		entry(&tar, e)
	}
	tar.Write(make([]byte, 1024))
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // of an option that is a constant
	}
	_, _ = z.Write(tar.Bytes())
	_ = z.Close()
	return out.Bytes(), size, files
}

// paxRecord returns "LENGTH KEY=VALUE\n". The length counts itself.
func paxRecord(key, value string) string {
	body := " " + key + "=" + value + "\n"
	n := len(body)
	for n != len(fmt.Sprint(n))+len(body) {
		n = len(fmt.Sprint(n)) + len(body)
	}
	return fmt.Sprint(n) + body
}

// entry writes a header and the data, padded.
func entry(out *bytes.Buffer, e Entry) {
	var h [512]byte
	copy(h[:100], e.Name)
	copy(h[100:], fmt.Sprintf("%07o\x00%07o\x00%07o\x00", e.Mode, 0, 0))
	copy(h[124:], fmt.Sprintf("%011o\x00%011o\x00        ", e.Size&(1<<33-1), 0))
	h[156] = e.Type
	copy(h[157:257], e.Linkname)
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	out.Write(h[:])
	out.WriteString(e.Data)
	out.Write(make([]byte, (512-len(e.Data)%512)%512))
}

// Bundled returns the artifact with one bundled directory and the given manifest.
func (a *Artifact) Bundled(name, path string, data []byte, size, files uint64) ([]byte, error) {
	c := a.clone()
	sum := sha256.Sum256(data)
	c.ranks[0].manifest.Layers = []*artifactpb.Layer{{Name: name, Path: path, Sha256: sum[:], PackedSize: uint64(len(data)), Size: size, Files: files}}
	c.layers = []layer{{sum, data}}
	return c.bytes()
}
