package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/private"
	"medusa/test/testenv"
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

// own copies a file of testdata: the checkout may be another user's.
func own(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A key that other users can exchange decides for them.
func TestKeysOfOthers(t *testing.T) {
	secret, public := own(t, "testdata/openssl.key"), own(t, "testdata/openssl.pub")
	for _, row := range []struct {
		what   string
		change func(path string) error
		root   bool
	}{
		{"that all can write", func(path string) error { return os.Chmod(path, 0o666) }, false},
		{"of another user", func(path string) error { return errors.Join(os.Chmod(path, 0o644), os.Chown(path, 54321, 54321)) }, true},
	} {
		if row.root && os.Geteuid() != 0 {
			testenv.Skip(t, testenv.Superuser)
		}
		if err := errors.Join(row.change(secret), row.change(public)); err != nil {
			t.Fatal(err)
		}
		var exposed *private.Error
		if _, err := ReadPrivate(secret); !errors.As(err, &exposed) {
			t.Errorf("private key %s: %v", row.what, err)
		}
		if _, err := ReadPublic(public); !errors.As(err, &exposed) {
			t.Errorf("public key %s: %v", row.what, err)
		}
	}
}

// testdata has keys in the form that OpenSSL 3 writes.
func TestKeysOfOpenSSL(t *testing.T) {
	private, err := ReadPrivate(own(t, "testdata/openssl.key"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublic(own(t, "testdata/openssl.pub"))
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
		if path != "none" {
			path = own(t, path)
		}
		if _, err := ReadPrivate(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := ReadPublic(own(t, "testdata/rsa.pub")); err == nil || !strings.Contains(err.Error(), "only Ed25519") {
		t.Error(err)
	}
}
