package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"medusa/internal/httplimit"
	"medusa/internal/private"
	"medusa/serving/picker/settings"
)

// limits bound the connections of each port. Envoy has one for each of its threads.
var limits = httplimit.Limits{Connections: 512, Client: 256, Stall: 10 * time.Second}

// Listen opens the port for Envoy. Whoever reaches it gets tickets, so it is a Unix socket in a folder that only this user can change, or demands a
// certificate of its clients.
func Listen(s *settings.Settings) (net.Listener, error) {
	path, ok := s.Socket()
	if !ok {
		return net.Listen("tcp", s.Listen)
	}
	if err := private.Check(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen at %s: %w (others could put a picker of theirs there)", path, err)
	}
	// A picker that was killed has left its socket. Nobody answers there.
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("listen at %s: another program does", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("listen at %s: it is no socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// Envoy may be another user of this user's group.
	if err := os.Chmod(path, 0o660); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// credentialsOf are the server's credentials. Files are read for each connection, since certificates are renewed.
func credentialsOf(t *settings.TLS) (grpc.ServerOption, error) {
	if t == nil {
		return grpc.EmptyServerOption{}, nil
	}
	if _, err := t.Config(); err != nil {
		return nil, err
	}
	return grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.Config() }})), nil
}
