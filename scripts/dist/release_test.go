package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts/trust"
)

// self is a tree whose medusa is this test: a Go binary with known modules.
func self(t *testing.T) []file {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return []file{{"lib/libmedusa_interpose.so", data, 0o755}, {"medusa", data, 0o755}, {"LICENSE", []byte("l"), 0o644}}
}

func TestBillNamesModulesAndHashes(t *testing.T) {
	a, err := billOfMaterials(self(t), "medusa-v1-linux-amd64", "v1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := billOfMaterials(self(t), "medusa-v1-linux-amd64", "v1")
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("two bills of one tree differ (%v)", err)
	}
	var bill struct {
		SpecVersion string
		Components  []struct{ Name, Purl string }
	}
	if err := json.Unmarshal(a, &bill); err != nil || bill.SpecVersion != "1.6" {
		t.Fatalf("version %q: %v", bill.SpecVersion, err)
	}
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name)
	}
	for _, want := range []string{"medusa", "lib/libmedusa_interpose.so", "std", "github.com/CycloneDX/cyclonedx-go"} {
		if !slices.Contains(names, want) {
			t.Errorf("the bill does not name %s: %v", want, names)
		}
	}
	if slices.Contains(names, "LICENSE") {
		t.Error("the bill names a text")
	}
	if _, err := billOfMaterials([]file{{"medusa", []byte("text"), 0o755}}, "m", "v1"); err == nil {
		t.Error("a binary with unknown modules is listed as having none")
	}
}

func TestProvenanceNamesItsSubjects(t *testing.T) {
	subject := resource{Name: "a.tar.gz", Digest: map[string]string{"sha256": "ab"}}
	out, err := provenanceOf([]platform{{"amd64", self(t)}}, []resource{subject}, "urn:test")
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 1 || s.Subject[0].Name != "a.tar.gz" || s.Predicate.RunDetails.Builder.ID != "urn:test" {
		t.Errorf("statement %s", out)
	}
	made := s.Predicate.BuildDefinition.InternalParameters
	if !strings.HasPrefix(made["go"], "go1.") || made["cc.amd64"] == "" {
		t.Errorf("compilers %v", made)
	}
}

func TestChecksumsAreSigned(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := trust.Generate(key); err != nil {
		t.Fatal(err)
	}
	r := &release{dir: dir}
	if err := r.add("a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(key, io.Discard); err != nil {
		t.Fatal(err)
	}
	public, err := trust.ReadPublic(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS.sig"))
	if err != nil {
		t.Fatal(err)
	}
	// The SHA-256 of "content", computed by another program.
	if want := "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73  a\n"; string(sums) != want {
		t.Errorf("checksums %q, want %q", sums, want)
	}
	if !ed25519.Verify(public, sums, signature) || ed25519.Verify(public, append(sums, '\n'), signature) {
		t.Error("the signature is not of the checksums")
	}
	// A later release without a key must not leave an earlier signature beside its checksums.
	if err := (&release{dir: dir}).finish("", io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "SHA256SUMS.sig")); !os.IsNotExist(err) {
		t.Errorf("the signature of other checksums stays: %v", err)
	}
}
