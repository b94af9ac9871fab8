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

// Suffix is the suffix of the file with an artifact file's proofs: FILE + Suffix.
const Suffix = ".proof"

// Proof has the origin of an artifact and its signatures. The origin is a registry, or a file that others could
// change. Such a file is no proof.
type Proof struct {
	Exposed    string      `json:"exposed,omitempty"` // why others could change the file that the artifact was copied from
	Reference  string      `json:"reference"`         // the reference by which it was pulled
	Pulled     time.Time   `json:"pulled"`
	Manifest   []byte      `json:"manifest"`   // as the registry has it
	Signatures []Signature `json:"signatures"` // signatures of the manifest that were valid, by an accepted key, when it was pulled
}

// Signature is one signature of a manifest.
type Signature struct {
	Key      string    `json:"key"` // KeyID
	Version  uint64    `json:"version"`
	Bytes    []byte    `json:"signature"`
	Verified time.Time `json:"verified"`
}

// by checks a manifest's signature with a key.
func (s *Signature) by(key ed25519.PublicKey, manifest []byte) error {
	return Verify(key, digestOf(manifest), s.Version, s.Bytes)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// holds says whether the manifest names the file with this digest as its artifact.
func (p *Proof) holds(digest string) bool {
	var m struct {
		Layers []struct {
			Digest string `json:"digest"`
		} `json:"layers"`
	}
	return json.Unmarshal(p.Manifest, &m) == nil && len(m.Layers) == 1 && m.Layers[0].Digest == digest
}

// Encode returns proofs in their stored form.
func Encode(proofs []Proof) ([]byte, error) { return json.MarshalIndent(proofs, "", "  ") }

// Decode reads the output of Encode. Empty data has no proofs.
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

// Merge adds proofs to those of an artifact, replacing earlier ones of the same reference. A proof without a signature does not
// replace one with a signature, because the artifact is the same.
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

// Beside returns the proofs beside an artifact file, for a copy of it elsewhere. It refuses proofs of another artifact. It also
// refuses them if other users can change them or the file, because the copy would not show that. If there are no proofs and others
// can change the file, it returns a proof that says so.
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
			return nil, fmt.Errorf("read proofs %s: they belong to another artifact", path+Suffix)
		}
	}
	return s.Proofs, nil
}

// maxProofs bounds the size of a proof file. Each proof has a manifest and a few signatures.
const maxProofs = 16 << 20

// Subject is an artifact to be judged.
type Subject struct {
	Name      string // for messages
	Digest    string // of the file
	Reference string // the reference that was asked for; may be empty
	Proofs    []Proof
	Exposed   error // the reason why other users could have changed it or its proofs; nil: they could not
}

// fileSubject describes an artifact file and the proofs beside it. It computes the digest only on request, because that reads the
// whole file.
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
