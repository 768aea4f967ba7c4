package mariadb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// authority is the certificate authority of one server.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// ClientTLS returns a TLS configuration for clients of a server that was started [WithTLS], with or without a client
// certificate.
func (s *Server) ClientTLS(withCertificate bool) (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AddCert(s.authority.certificate)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if !withCertificate {
		return config, nil
	}
	der, key, err := s.authority.issue("client")
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return config, nil
}

// writeCertificates creates an authority and the server's certificate, and configures the server with both.
func (s *Server) writeCertificates() error {
	var err error
	if s.authority, err = newAuthority(); err != nil {
		return err
	}
	der, key, err := s.authority.issue("server")
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem":     {Type: "CERTIFICATE", Bytes: s.authority.certificate.Raw},
		"server.pem": {Type: "CERTIFICATE", Bytes: der},
		"server.key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(s.file(name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	s.settings.args = append(s.settings.args,
		"--ssl-ca="+s.file("ca.pem"), "--ssl-cert="+s.file("server.pem"), "--ssl-key="+s.file("server.key"))
	return nil
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	return &authority{parsed, key}, err
}

// issue returns a new certificate for 127.0.0.1.
func (a *authority) issue(name string) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	template := certificate(name)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err = x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	return der, key, err
}

func certificate(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // without randomness nothing works
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}
