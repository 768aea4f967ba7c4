package secrets

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// certificateFor returns a certificate for these DNS names, and its key. It is valid for a year, beginning at noon.
func certificateFor(t *testing.T, names ...string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: tlsNoon, NotAfter: tlsNoon.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

var tlsNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestCheckTLS(t *testing.T) {
	certificate, key := certificateFor(t, "web.shop.svc", "*.web.shop.svc")
	nameless, ofNameless := certificateFor(t)
	tests := map[string]struct {
		reason  string
		data    map[string][]byte
		now     time.Time
		hosts   []string
		want    string // the expected reason; empty if the Secret can be used
		message string
		after   time.Duration
	}{
		"Valid":       {reason: "it can be used", data: pairOf(certificate, key), now: tlsNoon.Add(time.Hour), hosts: []string{"web.shop.svc", "0.web.shop.svc"}},
		"WithoutHost": {reason: "no name is asked for", data: pairOf(certificate, key), now: tlsNoon},
		"NoKey": {
			reason: "the key is there when somebody has added it", data: map[string][]byte{"tls.crt": certificate}, now: tlsNoon,
			want: secretKeyNotFound, message: `Secret shop/web has no key "tls.key"`,
		},
		"Empty": {
			reason: "issuers create it empty at first", data: pairOf(nil, key), now: tlsNoon,
			want: secretValueEmpty, message: `the value of key "tls.crt" in Secret shop/web is empty`,
		},
		"OtherKey": {
			reason: "a server would not start", data: pairOf(certificate, ofNameless), now: tlsNoon,
			want: certificateInvalid, message: "the certificate in Secret shop/web and its key are not a pair that a server can use: tls: private key does not match public key",
		},
		"NoCertificate": {
			reason: "it is another file", data: pairOf(key, key), now: tlsNoon,
			want: certificateInvalid, message: "are not a pair that a server can use",
		},
		"TooEarly": {
			reason: "the next pass comes when it is valid", data: pairOf(certificate, key), now: tlsNoon.Add(-time.Minute),
			want: certificateNotYetValid, message: "the certificate in Secret shop/web is valid only from 2026-03-01T12:00:00Z on", after: time.Minute,
		},
		"Ends": {
			reason: "a pass that comes at its end must not wait for now", data: pairOf(certificate, key), now: tlsNoon.AddDate(1, 0, 0),
			want: certificateExpired, message: "has expired",
		},
		"Expired": {
			reason: "clients refuse it", data: pairOf(certificate, key), now: tlsNoon.AddDate(1, 0, 1),
			want: certificateExpired, message: "the certificate in Secret shop/web has expired, at 2027-03-01T12:00:00Z",
		},
		"OtherHost": {
			reason: "clients refuse it", data: pairOf(certificate, key), now: tlsNoon, hosts: []string{"db.shop.svc"},
			want: certificateOtherHost, message: "the certificate in Secret shop/web is not for db.shop.svc: it has [web.shop.svc *.web.shop.svc]",
		},
		"NoNames": {
			reason: "common names do not count", data: pairOf(nameless, ofNameless), now: tlsNoon, hosts: []string{"web.shop.svc"},
			want: certificateOtherHost, message: "it has no DNS names",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			named := types.NamespacedName{Namespace: "shop", Name: "web"}
			c := fake.NewFakeClient(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: tc.data})
			version, ends, err := CheckTLS(t.Context(), c, named, tc.now, tc.hosts...)
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				assert.Equal(t, tlsNoon.AddDate(1, 0, 0), ends)
				assert.Equal(t, "/999", version, "no UID, and the resource version of the fake client")
				return
			}
			var failure *Error
			require.ErrorAs(t, err, &failure, tc.reason)
			reason, after := failure.Waiting()
			assert.Equal(t, tc.want, reason, tc.reason)
			assert.Equal(t, tc.after, after)
			assert.ErrorContains(t, err, tc.message)
			assert.NotContains(t, err.Error(), "PRIVATE")
			assert.Zero(t, ends)
			assert.Empty(t, version)
		})
	}
}

func pairOf(certificate, key []byte) map[string][]byte {
	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
}

func TestCheckTLSOfNothing(t *testing.T) {
	for name, message := range map[string]string{
		"gone": "Secret shop/gone does not exist", "": "the reference to a Secret with a certificate lacks its name",
	} {
		_, _, err := CheckTLS(t.Context(), fake.NewFakeClient(), types.NamespacedName{Namespace: "shop", Name: name}, tlsNoon)
		var failure *Error
		require.ErrorAs(t, err, &failure)
		reason, _ := failure.Waiting()
		assert.Equal(t, secretNotFound, reason)
		assert.EqualError(t, err, message)
	}
}
