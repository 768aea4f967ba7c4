package reconciletest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// TLSSecret returns a Secret of type kubernetes.io/tls, as a user gives it to servers: a key, and a certificate for the hosts that is signed
// by itself. The certificate is valid from the start of a run's virtual clock, 2000-01-01 in UTC, for as long as valid says.
//
// The same arguments lead to the same Secret, so that runs can be compared, and to a key that everybody can calculate: it is only for
// tests. A host that is not a name in ASCII panics.
func TLSSecret(name types.NamespacedName, valid time.Duration, hosts ...string) *corev1.Secret {
	seed := sha256.Sum256(fmt.Append(nil, name, valid, hosts))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name.String()}, DNSNames: hosts, NotBefore: state.ClockStart, NotAfter: state.ClockStart.Add(valid),
	}
	certificate, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(fmt.Errorf("make a certificate for %q: %w", hosts, err))
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // never: the kind of key is known
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		},
	}
}
