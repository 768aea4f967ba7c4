package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// database is the connection to the database as the flags describe it.
type database struct{ address, credentials, authorities string }

// open returns a client, which connects at its first call. The password is read again for every connection, so that it may
// change.
func (d database) open() (*accounts.Client, error) {
	host, _, err := net.SplitHostPort(d.address)
	if err != nil {
		return nil, fmt.Errorf("--database-address: %w", err)
	}
	user, err := d.read("username")
	if err != nil {
		return nil, err
	}
	options := accounts.Options{Address: d.address, User: user, Password: func() (string, error) { return d.read("password") }}
	if d.authorities != "" {
		pem, err := os.ReadFile(d.authorities)
		if err != nil {
			return nil, fmt.Errorf("--database-ca: %w", err)
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--database-ca: %s has no certificates in PEM", d.authorities)
		}
		options.TLS = &tls.Config{RootCAs: authorities, ServerName: host, MinVersion: tls.VersionTLS12}
	}
	return accounts.New(options)
}

func (d database) read(file string) (string, error) {
	content, err := os.ReadFile(filepath.Join(d.credentials, file))
	if err != nil {
		return "", fmt.Errorf("--database-credentials: %w", err)
	}
	return strings.TrimSuffix(string(content), "\n"), nil
}
