package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS names the files for a port whose clients have certificates.
type TLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	Clients     string `yaml:"clients"` // the authorities of the clients' certificates
}

// Config reads the files.
func (t *TLS) Config() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	data, err := os.ReadFile(t.Clients)
	if err != nil {
		return nil, fmt.Errorf("read authorities of clients: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("read authorities of clients: %s has no certificate", t.Clients)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities}, nil
}
