package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"medusa/internal/contract"
)

// now is the time for the expiry of keys; tests replace it.
var now = time.Now

// Candidates returns the IDs of the keys that may sign for a reference today.
func (p *Policy) Candidates(reference string) []string {
	var out []string
	for i := range p.Keys {
		if p.Keys[i].counts(reference) == nil {
			out = append(out, KeyID(p.Keys[i].Public))
		}
	}
	return out
}

// counts returns the reason why a key may not sign for a reference, or nil.
func (k *Key) counts(reference string) error {
	repository := Repository(reference)
	if !k.Expires.IsZero() && !now().Before(k.Expires) {
		return fmt.Errorf("key %s expired on %s", k.Name, k.Expires.Format(time.DateOnly))
	}
	if len(k.Scopes) > 0 && !slices.ContainsFunc(k.Scopes, func(s string) bool { return matches(s, repository) }) {
		return fmt.Errorf("key %s may not sign for %s", k.Name, repository)
	}
	return nil
}

// Accept returns the name of the key that validates a manifest's signature, or the reason for refusing it.
func (p *Policy) Accept(reference string, manifest []byte, s *Signature) (key string, err error) {
	err = ErrSignature
	for i := range p.Keys {
		k := &p.Keys[i]
		if KeyID(k.Public) != s.Key {
			continue
		}
		// mutant: signature of this manifest
		if err = s.by(k.Public, manifest); err != nil {
			continue
		}
		// mutant: a key counts for its references and until it expires
		if err = k.counts(reference); err != nil {
			continue
		}
		// mutant: no older version than the least
		if least := p.Minimum[Repository(reference)]; s.Version < least {
			err = fmt.Errorf("version %d of %s is below the least, %d", s.Version, Repository(reference), least)
			continue
		}
		return k.Name, nil
	}
	return "", err
}

// Judge returns an error that wraps ErrUntrusted if the policy refuses an artifact. If the policy lets a doubtful artifact pass,
// the warning gives the doubt.
func (p *Policy) Judge(s Subject) (warning string, err error) {
	doubt := p.doubt(s)
	switch {
	case doubt == nil:
		return "", nil
	case p.Required: // mutant: a policy that requires signatures
		return "", fmt.Errorf("judge %s: %w: %w", s.Name, ErrUntrusted, doubt)
	}
	return fmt.Sprintf("%s: %v (an artifact is code that the engine's device executes)", s.Name, doubt), nil
}

// JudgeFile judges an artifact file by the proofs beside it.
func (p *Policy) JudgeFile(path string) (warning string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find artifact: %w", err) // a file that is not there is not doubtful
	}
	s, err := fileSubject(path, len(p.Keys) > 0)
	if err != nil {
		return "", fmt.Errorf("judge %s: %w", path, err)
	}
	return p.Judge(s)
}

// doubt returns the reason not to trust an artifact. A policy without keys trusts artifacts that this user made, and artifacts
// that were verified when they were pulled.
func (p *Policy) doubt(s Subject) error {
	// mutant: what others can change is doubtful
	if s.Exposed != nil {
		return fmt.Errorf("others can change it: %w", s.Exposed)
	}
	proofs := s.Proofs
	if asked := slices.IndexFunc(proofs, func(q Proof) bool { return q.Reference == s.Reference }); s.Reference != "" && asked >= 0 {
		proofs = proofs[asked : asked+1] // the proof of another reference does not answer for the least version of this one
	}
	if len(p.Keys) == 0 {
		if len(proofs) == 0 || slices.ContainsFunc(proofs, func(q Proof) bool { return len(q.Signatures) > 0 }) {
			return nil
		}
		if why := proofs[0].Exposed; why != "" {
			return exposed(why)
		}
		return fmt.Errorf("it was pulled from %s and no signature was verified (medusa pull --verify KEY, "+contract.EnvTrust+")", proofs[0].Reference)
	}
	if len(proofs) == 0 && !p.Required {
		return nil // made here
	}
	var reasons []string
	for i := range proofs {
		q := &proofs[i]
		if q.Exposed != "" {
			reasons = append(reasons, exposed(q.Exposed).Error())
			continue
		}
		// mutant: a proof is of one artifact
		if !q.holds(s.Digest) {
			reasons = append(reasons, fmt.Sprintf("the manifest of %s is not this artifact's", q.Reference))
			continue
		}
		for j := range q.Signatures {
			_, err := p.Accept(q.Reference, q.Manifest, &q.Signatures[j])
			if err == nil {
				return nil
			}
			reasons = append(reasons, err.Error())
		}
	}
	if len(reasons) == 0 {
		return fmt.Errorf("%w by a key of the policy is beside it (medusa pull fetches it)", ErrSignature)
	}
	return errors.New(strings.Join(reasons, "; "))
}

func exposed(why string) error {
	return fmt.Errorf("it was copied from a file that others could change: %s", why)
}
