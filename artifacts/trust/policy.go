package trust

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/internal/contract"
	"medusa/internal/private"
	"medusa/internal/yamlfile"
)

// Policy says which artifacts may be used. The zero value lets all pass, with a warning about those that another user made.
type Policy struct {
	Required bool // refuse artifacts without an accepted signature
	Keys     []Key
	Minimum  map[string]uint64 // the least version of an artifact, by repository (REGISTRY/REPOSITORY)
}

// Key is an accepted public key.
type Key struct {
	Name    string
	Public  ed25519.PublicKey
	Scopes  []string  // patterns of the repositories that it may sign for; none: all
	Expires time.Time // not accepted from then on; zero: never expires
}

// Require returns a policy that demands a signature by this key.
func Require(name string, key ed25519.PublicKey) *Policy {
	return &Policy{Required: true, Keys: []Key{{Name: name, Public: key}}}
}

// FromEnv reads the policy in the file that MEDUSA_TRUST names. keyFile may be empty; otherwise that key must have signed, and if
// the policy has keys, it must be one of them.
func FromEnv(keyFile string) (*Policy, error) {
	p := &Policy{}
	if path := os.Getenv(contract.EnvTrust); path != "" {
		var err error
		if p, err = ReadPolicy(path); err != nil {
			return nil, err
		}
	}
	if keyFile == "" {
		return p, nil
	}
	public, err := ReadPublic(keyFile)
	if err != nil {
		return nil, err
	}
	narrow := Require(keyFile, public)
	narrow.Minimum = p.Minimum
	if len(p.Keys) > 0 {
		narrow.Keys = nil
		for _, k := range p.Keys {
			if k.Public.Equal(public) {
				narrow.Keys = append(narrow.Keys, k)
			}
		}
		if narrow.Keys == nil {
			return nil, fmt.Errorf("verify by key %s (%s): %w: the policy lacks this key ("+contract.EnvTrust+")", KeyID(public), keyFile, ErrUntrusted)
		}
	}
	return narrow, nil
}

// ReadPolicy reads a policy file and the key files that it names, by paths relative to its folder. No other user may be able to
// write them, because they decide which artifacts are trusted.
func ReadPolicy(path string) (*Policy, error) {
	p, err := readPolicy(path)
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w ("+contract.EnvTrust+")", path, err)
	}
	return p, nil
}

func readPolicy(path string) (*Policy, error) {
	// mutant: a policy belongs to this user alone
	if err := private.Check(path); err != nil {
		return nil, err
	}
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Mode string `yaml:"mode"`
		Keys []struct {
			Name    string   `yaml:"name"`
			File    string   `yaml:"file"`
			Scopes  []string `yaml:"scopes"`
			Expires *string  `yaml:"expires"`
		} `yaml:"keys"`
		Minimum map[string]uint64 `yaml:"minimum"`
	}
	if _, err := yamlfile.Decode(filepath.Base(path), data, &file); err != nil {
		return nil, err
	}
	p := &Policy{Minimum: file.Minimum}
	switch file.Mode {
	case "required":
		p.Required = true
	case "warn":
	default:
		return nil, fmt.Errorf("mode %q: want warn or required", file.Mode)
	}
	for _, k := range file.Keys {
		if k.Name == "" || k.File == "" {
			return nil, errors.New("a key needs a name and a file")
		}
		if k.Scopes != nil && len(k.Scopes) == 0 {
			return nil, fmt.Errorf("key %s: scopes is empty (leave it out if the key may sign for all repositories)", k.Name)
		}
		key := Key{Name: k.Name, Scopes: k.Scopes}
		for _, s := range k.Scopes {
			if host, _, found := strings.Cut(s, "/"); !found || strings.Contains(host, "*") {
				return nil, fmt.Errorf("key %s: scope %q: want REGISTRY/REPOSITORY, with * only after the first /", k.Name, s)
			}
		}
		if k.Expires != nil {
			if key.Expires, err = time.Parse(time.DateOnly, *k.Expires); err != nil {
				return nil, fmt.Errorf("key %s: expires: %w", k.Name, err)
			}
		}
		if !filepath.IsAbs(k.File) {
			k.File = filepath.Join(filepath.Dir(path), k.File)
		}
		if key.Public, err = ReadPublic(k.File); err != nil {
			return nil, fmt.Errorf("key %s: %w", k.Name, err)
		}
		p.Keys = append(p.Keys, key)
	}
	for repo := range p.Minimum {
		if repo != Repository(repo) || !strings.Contains(repo, "/") {
			return nil, fmt.Errorf("minimum %q: want REGISTRY/REPOSITORY, without a tag", repo)
		}
	}
	if p.Required && len(p.Keys) == 0 {
		return nil, errors.New("mode required needs keys")
	}
	return p, nil
}

// Repository returns a reference without its tag and digest.
func Repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if slash := strings.LastIndexByte(reference, '/'); strings.LastIndexByte(reference, ':') > slash {
		reference = reference[:strings.LastIndexByte(reference, ':')]
	}
	return reference
}

// matches says whether a pattern fits a repository; * stands for any characters.
func matches(pattern, repository string) bool {
	parts := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(repository, parts[0])
	if !found || len(parts) == 1 {
		return found && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, found = strings.Cut(rest, part); !found {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
