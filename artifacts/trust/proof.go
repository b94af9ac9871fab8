package trust

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"medusa/internal/private"
)

// Suffix ends the name of the file with the proofs of an artifact file: FILE + Suffix.
const Suffix = ".proof"

// Proof says where an artifact came from and who signed it: a registry, or a file that others could change, which proves nothing.
type Proof struct {
	Exposed    string      `json:"exposed,omitempty"` // why others could change the file that it was copied from; then nothing follows
	Reference  string      `json:"reference"`         // by which it was pulled
	Pulled     time.Time   `json:"pulled"`
	Manifest   []byte      `json:"manifest"`   // as the registry has it
	Signatures []Signature `json:"signatures"` // of the manifest; those that were valid by a key that counted then
}

// Signature is one signature of a manifest.
type Signature struct {
	Key      string    `json:"key"` // KeyID
	Version  uint64    `json:"version"`
	Bytes    []byte    `json:"signature"`
	Verified time.Time `json:"verified"`
}

// by checks a signature of a manifest by a key.
func (s *Signature) by(key ed25519.PublicKey, manifest []byte) error {
	return Verify(key, digestOf(manifest), s.Version, s.Bytes)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// holds says whether the manifest names the file with a digest as its artifact.
func (p *Proof) holds(digest string) bool {
	var m struct {
		Layers []struct {
			Digest string `json:"digest"`
		} `json:"layers"`
	}
	return json.Unmarshal(p.Manifest, &m) == nil && len(m.Layers) == 1 && m.Layers[0].Digest == digest
}

// Encode returns proofs as they are kept.
func Encode(proofs []Proof) ([]byte, error) { return json.MarshalIndent(proofs, "", "  ") }

// Decode reads what Encode returned; nothing holds no proofs.
func Decode(data []byte) ([]Proof, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var out []Proof
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read proofs: %w", err)
	}
	return out, nil
}

// Merge adds proofs to those of an artifact, in the place of earlier ones by the same reference. One without a signature does
// not replace one with: the artifact is the same.
func Merge(have, more []Proof) []Proof {
	have = slices.Clone(have)
	for _, q := range more {
		i := slices.IndexFunc(have, func(p Proof) bool { return p.Reference == q.Reference })
		switch {
		case i < 0:
			have = append(have, q)
		case len(q.Signatures) > 0 || len(have[i].Signatures) == 0:
			have[i] = q
		}
	}
	return have
}

// Beside returns the proofs beside an artifact file, for a copy of it elsewhere. If there are none and others can change the
// file, the proof says that, since the copy would not tell. For the same reason proofs are refused if others can change them
// or the file. They are refused if they are another artifact's.
func Beside(path string) ([]Proof, error) {
	if _, err := os.Lstat(path + Suffix); errors.Is(err, fs.ErrNotExist) {
		err := private.Check(path)
		// mutant: a copy of what others can change
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return []Proof{{Exposed: err.Error()}}, nil
		}
		return nil, nil
	}
	s, err := fileSubject(path, true)
	// mutant: proofs that others can change stay behind
	if err == nil && s.Exposed != nil {
		err = s.Exposed
	}
	if err != nil {
		return nil, fmt.Errorf("read proofs %s: %w", path+Suffix, err)
	}
	for i := range s.Proofs {
		if p := &s.Proofs[i]; p.Exposed == "" && !p.holds(s.Digest) {
			return nil, fmt.Errorf("read proofs %s: they are another artifact's", path+Suffix)
		}
	}
	return s.Proofs, nil
}

// maxProofs bounds what is read as proofs: each has a manifest and few signatures.
const maxProofs = 16 << 20

// Subject is an artifact that is to be judged.
type Subject struct {
	Name      string // for messages
	Digest    string // of the file
	Reference string // by which it was asked for, if by one
	Proofs    []Proof
	Exposed   error // why others could have changed it or its proofs; nil: they could not
}

// fileSubject describes the artifact in a file and the proofs beside it. The digest, which takes reading the file, is left
// out unless it is wanted.
func fileSubject(path string, digest bool) (Subject, error) {
	s := Subject{Name: path, Exposed: private.Check(path)}
	data, err := readSome(path + Suffix)
	if err == nil {
		s.Exposed = errors.Join(s.Exposed, private.Check(path+Suffix))
		s.Proofs, err = Decode(data)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || !digest {
		return s, err
	}
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	s.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return s, err
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProofs+1))
	if err == nil && len(data) > maxProofs {
		err = fmt.Errorf("read proofs %s: more than %d bytes", path, maxProofs)
	}
	return data, err
}
