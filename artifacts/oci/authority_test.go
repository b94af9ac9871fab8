package oci

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/memregistry"
)

// A registry whose certificate comes from an authority of one's own, and one that is asked for without encryption.
func TestAuthorities(t *testing.T) {
	registry := httptest.NewTLSServer(&memregistry.Registry{Referrers: true})
	defer registry.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	path, _ := made(t, "v1")
	host := strings.TrimPrefix(registry.URL, "https://")
	if _, err := (&Client{CAFile: file}).Push(t.Context(), path, host+"/m:1", PushOptions{}); err != nil {
		t.Errorf("with its authority: %v", err)
	}
	if err := os.WriteFile(file, []byte("no certificate"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Client{CAFile: file}).Push(t.Context(), path, host+"/m:1", PushOptions{}); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("with an empty file: %v", err)
	}
	if _, err := (&Client{}).Push(t.Context(), path, host+"/m:1", PushOptions{}); err == nil {
		t.Error("plain HTTP reaches a registry with TLS")
	}
	repo, err := (&Client{PlainHTTP: true}).repository("registry.example/m:1")
	if err != nil || !repo.PlainHTTP {
		t.Errorf("plain HTTP: %v", err)
	}
}
