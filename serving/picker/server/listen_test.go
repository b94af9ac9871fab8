package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"medusa/serving/picker/settings"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// issue makes a certificate for a use.
func (a *authority) issue(use x509.ExtKeyUsage) tls.Certificate {
	a.t.Helper()
	c, key := a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{use}})
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// write writes a file into a folder, and returns its path.
func write(t *testing.T, folder, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// alive asks a picker for its health.
func alive(t *testing.T, target string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "liveness"})
	return err
}

// serve starts a picker on the port of its settings, and returns both ports.
func serve(t *testing.T, s *settings.Settings) (envoy, admin net.Addr) {
	t.Helper()
	s.MaxWaiting, s.MaxBody, s.MaxEndpoints, s.Gone, s.Policy.Name = 9, 1<<20, 4, 0.5, "fcfs"
	s.Models = []settings.Model{{Name: "a", Weight: 1, Timeout: 9}}
	s.Secret = write(t, t.TempDir(), "secret", []byte(strings.Repeat("s", 40)))
	p, err := New(s, t.Output(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx, l, pages) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr(), pages.Addr()
}

// Only clients with a certificate of the right authority get an answer.
func TestClientsHaveCertificates(t *testing.T) {
	folder := t.TempDir()
	own, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	c := own.issue(x509.ExtKeyUsageServerAuth)
	key, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	files := &settings.TLS{Certificate: write(t, folder, "c", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})),
		Key: write(t, folder, "k", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})), Clients: write(t, folder, "a", clients.pem())}
	at, admin := serve(t, &settings.Settings{Listen: "127.0.0.1:0", TLS: files})
	roots := x509.NewCertPool()
	roots.AddCert(own.cert)
	with := func(list ...tls.Certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: list})
	}
	if err := alive(t, at.String(), with(clients.issue(x509.ExtKeyUsageClientAuth))); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	for name, creds := range map[string]credentials.TransportCredentials{"without a certificate": with(), "of another authority": with(others.issue(x509.ExtKeyUsageClientAuth)),
		"with a server's certificate": with(clients.issue(x509.ExtKeyUsageServerAuth)), "without TLS": insecure.NewCredentials()} {
		if err := alive(t, at.String(), creds); err == nil {
			t.Errorf("a client %s gets an answer", name)
		}
	}
	// The authorities may change while the picker runs.
	write(t, folder, "a", others.pem())
	if err := alive(t, at.String(), with(others.issue(x509.ExtKeyUsageClientAuth))); err != nil {
		t.Errorf("after a change of the authorities: %v", err)
	}
	if err := alive(t, at.String(), with(clients.issue(x509.ExtKeyUsageClientAuth))); err == nil {
		t.Error("the former authority still counts")
	}
	// Probes of Kubernetes have no certificate.
	for path, want := range map[string]int{"/health": http.StatusOK, "/ready": http.StatusServiceUnavailable} {
		response, err := http.Get("http://" + admin.String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d", path, response.StatusCode)
		}
	}
	files.Clients = write(t, folder, "empty", nil)
	if _, err := credentialsOf(files); err == nil {
		t.Error("a file without authorities is none")
	}
}

func TestUnixSocket(t *testing.T) {
	folder, err := os.MkdirTemp("", "picker") // a test's own folder may have a path that is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	left, err := net.Listen("unix", path) // by a picker that was killed
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = left.Close()
	s := &settings.Settings{Listen: "unix:" + path}
	serve(t, s)
	if err := alive(t, "unix:"+path, insecure.NewCredentials()); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("all users may use the socket: %v, %v", info.Mode(), err)
	}
	if _, err := Listen(s); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("a second picker: %v", err)
	}
	if _, err := Listen(&settings.Settings{Listen: "unix:" + write(t, folder, "file", nil)}); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("in place of a file: %v", err)
	}
	shared := filepath.Join(folder, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(&settings.Settings{Listen: "unix:" + filepath.Join(shared, "s")}); err == nil || !strings.Contains(err.Error(), "others could") {
		t.Errorf("in a folder of all users: %v", err)
	}
}
