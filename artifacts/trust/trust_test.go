package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func TestSignAndVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := Generate(path); err != nil {
		t.Fatal(err)
	}
	private, err := ReadPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublic(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signature := Sign(private, digest, 0)
	if err := Verify(public, digest, 0, signature); err != nil {
		t.Fatal(err)
	}
	for i := range signature {
		signature[i] ^= 1
		if err := Verify(public, digest, 0, signature); !errors.Is(err, ErrSignature) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
		signature[i] ^= 1
	}
	for name, err := range map[string]error{
		"another digest":  Verify(public, digest[:len(digest)-1]+"5", 0, signature),
		"none":            Verify(public, digest, 0, nil),
		"cut":             Verify(public, digest, 0, signature[:63]),
		"another's bytes": Verify(public, digest, 0, private.Seed()),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := Generate(other); err != nil {
		t.Fatal(err)
	}
	if foreign, err := ReadPublic(other + ".pub"); err != nil || Verify(foreign, digest, 0, signature) == nil {
		t.Errorf("another key accepts it (%v)", err)
	}
}

func TestGenerateIsPrivateAndReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := Generate(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := Generate(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a key was replaced: %v", err)
	}
}

// testdata has keys in the form that OpenSSL 3 writes.
func TestKeysOfOpenSSL(t *testing.T) {
	private, err := ReadPrivate("testdata/openssl.key")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublic("testdata/openssl.pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(public, digest, 0, Sign(private, digest, 0)); err != nil {
		t.Error(err)
	}
}

func TestForeignKeys(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/openssl.pub": `the PEM block is a "PUBLIC KEY", want a "PRIVATE KEY"`,
		"testdata/rsa.key":     "only Ed25519 is supported",
		"trust.go":             "not a PEM file",
		"none":                 "no such file",
	} {
		if _, err := ReadPrivate(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := ReadPublic("testdata/rsa.pub"); err == nil || !strings.Contains(err.Error(), "only Ed25519") {
		t.Error(err)
	}
}
