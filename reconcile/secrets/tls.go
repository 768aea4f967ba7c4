package secrets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The additional reasons of an [Error] that [CheckTLS] returns.
const (
	certificateInvalid     = "CertificateInvalid"
	certificateNotYetValid = "CertificateNotYetValid"
	certificateExpired     = "CertificateExpired"
	certificateOtherHost   = "CertificateOtherHost"
)

// CheckTLS reads a Secret of type kubernetes.io/tls, and checks it as a server would: tls.crt and tls.key are a pair, and the certificate
// is valid at the time now, and for each of the hosts. It does not check who has signed the certificate. It returns the version of the
// Secret as in [Version], and the time when the certificate expires, so that a step can ask for its next pass at that time:
//
//	now := time.Now()
//	_, ends, err := secrets.CheckTLS(ctx, c, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.TLS}, now, "web.shop.svc")
//	if err != nil {
//		return reconcile.Halt(err)
//	}
//	return reconcile.SuccessUntil("", ends.Sub(now), "the certificate is valid until %s", ends.UTC().Format(time.RFC3339))
//
// If the step returns reconcile.Halt(err), later steps do not run, so the servers that they keep stay as they are. If servers should
// restart with each version, call CheckTLS again in an input of package ownedresources, and take the version from there: the Secret may
// change after the step has checked it.
//
// If the Secret is missing or a server cannot use it, the error is a *[Error]. It contains no part of the key. Other
// errors of the reader are wrapped.
func CheckTLS(ctx context.Context, c client.Reader, name types.NamespacedName, now time.Time, hosts ...string) (version string, ends time.Time, err error) {
	if name.Name == "" {
		return "", time.Time{}, &Error{reason: secretNotFound, message: "the reference to a Secret with a certificate lacks its name"}
	}
	secret, err := get(ctx, c, name)
	if err != nil {
		return "", time.Time{}, err
	}
	if ends, err = checkTLS(secret, now, hosts); err != nil {
		return "", time.Time{}, err
	}
	return versionOf(secret), ends, nil
}

// checkTLS returns when the certificate in a Secret expires.
func checkTLS(secret *corev1.Secret, now time.Time, hosts []string) (ends time.Time, err error) {
	name := client.ObjectKeyFromObject(secret)
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, err := secretValue(secret, key); err != nil {
			return time.Time{}, err
		}
	}
	fail := func(reason, format string, args ...any) (time.Time, error) {
		return time.Time{}, &Error{reason: reason, message: fmt.Sprintf("the certificate in Secret %s ", name) + fmt.Sprintf(format, args...)}
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fail(certificateInvalid, "and its key are not a pair that a server can use: %s", err)
	}
	certificate := pair.Leaf
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case now.Before(certificate.NotBefore):
		return time.Time{}, &Error{
			reason: certificateNotYetValid, after: certificate.NotBefore.Sub(now),
			message: fmt.Sprintf("the certificate in Secret %s is valid only from %s on", name, at(certificate.NotBefore)),
		}
	case !now.Before(certificate.NotAfter): // ends must be later than now
		return fail(certificateExpired, "has expired, at %s", at(certificate.NotAfter))
	}
	for _, host := range hosts {
		if err := certificate.VerifyHostname(host); err != nil {
			return fail(certificateOtherHost, "is not for %s: it has %s", host, namesOf(certificate))
		}
	}
	return certificate.NotAfter, nil
}

// namesOf returns the names and addresses for which a certificate is valid, as text.
func namesOf(certificate *x509.Certificate) string {
	names := append([]string{}, certificate.DNSNames...)
	for _, address := range certificate.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 {
		return "no DNS names"
	}
	return fmt.Sprint(names)
}
