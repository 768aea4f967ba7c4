package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const validity = 365 * 24 * time.Hour

// authority signs the certificates of one control plane.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// pair is a certificate and its key, both in PEM.
type pair struct{ certificate, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "opblocks-test"}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}

func (a *authority) bundle() []byte { return pemCertificate(a.certificate.Raw) }

// server returns a certificate for kube-apiserver at these addresses.
func (a *authority) server(addresses ...net.IP) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{localhost, "kubernetes.default.svc"},
		IPAddresses: addresses,
		NotBefore:   a.certificate.NotBefore,
		NotAfter:    time.Now().Add(validity),
	})
}

// webhook returns a certificate for webhooks on this machine. The certificate is valid until end.
func (a *authority) webhook(end time.Time) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "webhooks"},
		DNSNames:    []string{localhost},
		IPAddresses: []net.IP{net.ParseIP(loopback)},
		NotBefore:   end.Add(-validity),
		NotAfter:    end,
	})
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return pair{}, err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber = serial
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair{certificate: pemCertificate(raw), key: keyPEM}, nil
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, encoded, err
}

func pemCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
}
