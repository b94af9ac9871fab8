package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"medusa/internal/private"
)

// ErrUntrusted means that an artifact lacks a signature that the policy demands.
var ErrUntrusted = errors.New("not trusted")

// ErrSignature means that no signature found is valid by the given key.
var ErrSignature = errors.New("no valid signature")

// maxKeyFile bounds the size of a key file. A PEM file of an Ed25519 key has about 120 bytes.
const maxKeyFile = 64 << 10

// message returns the signed text. Version 0 has no version line, which is the form from before versions existed.
func message(digest string, version uint64) []byte {
	// mutant: the version is signed
	if version == 0 {
		return []byte("medusa signature v1\n" + digest + "\n")
	}
	return fmt.Appendf(nil, "medusa signature v2\n%s\nversion %d\n", digest, version)
}

// Sign returns the signature of a digest and a version.
func Sign(key ed25519.PrivateKey, digest string, version uint64) []byte {
	return ed25519.Sign(key, message(digest, version))
}

// Verify returns an error that wraps ErrSignature if the key did not sign this digest and version.
func Verify(key ed25519.PublicKey, digest string, version uint64, signature []byte) error {
	if !ed25519.Verify(key, message(digest, version), signature) {
		return fmt.Errorf("verify %s: %w by key %s", digest, ErrSignature, KeyID(key))
	}
	return nil
}

// KeyID is the beginning of the SHA-256 of a key's 32 bytes. It helps to find a signature, but is no proof.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// ReadPrivate reads a PEM file with a PKCS #8 private key.
func ReadPrivate(path string) (ed25519.PrivateKey, error) {
	der, err := readPEM(path, "PRIVATE KEY")
	if err != nil {
		return nil, fmt.Errorf("read private key %s: %w", path, err)
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read private key %s: %w", path, err)
	}
	key, ok := any.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read private key %s: it is of another algorithm (only Ed25519 is supported)", path)
	}
	return key, nil
}

// ReadPublic reads a PEM file with a public key in the form of X.509 (SubjectPublicKeyInfo).
func ReadPublic(path string) (ed25519.PublicKey, error) {
	der, err := readPEM(path, "PUBLIC KEY")
	if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", path, err)
	}
	any, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", path, err)
	}
	key, ok := any.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("read public key %s: it is of another algorithm (only Ed25519 is supported)", path)
	}
	return key, nil
}

func readPEM(path, kind string) ([]byte, error) {
	// mutant: keys of others
	if err := private.Check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("not a PEM file")
	}
	if block.Type != kind {
		return nil, fmt.Errorf("the PEM block is a %q, want a %q", block.Type, kind)
	}
	return block.Bytes, nil
}

// Generate makes a key pair: the private key at path, readable by its owner only, and the public key at path + ".pub". It never
// replaces a file.
func Generate(path string) error {
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	if err := create(path, "PRIVATE KEY", der, 0o600); err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	if err := create(path+".pub", "PUBLIC KEY", pub, 0o644); err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	return nil
}

func create(path, kind string, der []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Sync(), f.Close())
}
