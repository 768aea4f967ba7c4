// Package secrets reads the Secrets that an object refers to, in a step of package reconcile or in any reconciler.
//
//	value, version, err := secrets.Read(ctx, c, shop.Namespace, shop.Spec.Password)
//	if err != nil {
//		return err // a wait if the Secret is missing, with a reason for the condition
//	}
//
// [Read] returns a value. [Version] shows whether the Secret has changed, without a request. [CheckTLS] reads a certificate, and checks it
// as a server would. A value is [Sensitive]: it is printed as (hidden). The error for a missing Secret, key or value is an [Error].
package secrets

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sensitive is a value that logs, errors and JSON show as "(hidden)". Convert it to []byte or string only where you use it.
// Do not keep it in an unexported field of a struct that is printed: package fmt does not call its methods there.
type Sensitive []byte

const hidden = "(hidden)"

// String returns "(hidden)".
func (Sensitive) String() string { return hidden }

// Format writes "(hidden)", whatever the verb.
func (Sensitive) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText returns "(hidden)".
func (Sensitive) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Error is the error for a Secret, a key or a value that is missing, or for a certificate that a server cannot use. Find it with errors.As.
//
// A step of package reconcile that returns it waits. Usually the error has no delay: if the step declares the Secret by Reads, an event of
// the Secret triggers the next pass. If the Secret exists and the cache does not show it, the delay is a minute. If a certificate is not
// valid yet, the delay ends when the certificate becomes valid.
//
// Its reason is one of these:
//
//   - SecretNotFound, if the Secret does not exist, or the selector lacks its name or its key;
//   - SecretNotInCache, if the Secret exists for more than a minute, and the cache's selector or namespaces leave it out. A change of it
//     would not trigger a pass;
//   - SecretKeyNotFound, if the Secret does not have the key;
//   - SecretValueEmpty, if the value of the key is empty;
//   - from [CheckTLS] also CertificateInvalid, CertificateNotYetValid, CertificateExpired, and CertificateOtherHost.
type Error struct {
	reason  string
	message string
	after   time.Duration
}

func (e *Error) Error() string { return e.message }

// Waiting implements the Waiter of package reconcile.
func (e *Error) Waiting() (reason string, after time.Duration) { return e.reason, e.after }

const (
	secretNotFound    = "SecretNotFound"
	secretNotInCache  = "SecretNotInCache"
	secretKeyNotFound = "SecretKeyNotFound"
	secretValueEmpty  = "SecretValueEmpty"
)

// maxCacheDelay is how long a cache may be behind. If the cache still does not have an object after that, its options
// exclude the object.
const maxCacheDelay = time.Minute

// stepClient is the client of a step. Unlike other readers, it can look on the API server for an object that is not
// in its cache.
type stepClient interface {
	PastCache(ctx context.Context, obj client.Object, gvk schema.GroupVersionKind, name client.ObjectKey) (found *metav1.PartialObjectMetadata, isCached bool, err error)
}

// missingSecret returns the error for a Secret that was not found. If it was read from the cache, the Secret may still
// exist.
func missingSecret(ctx context.Context, c client.Reader, name client.ObjectKey, read client.Object) error {
	missing := &Error{reason: secretNotFound, message: fmt.Sprintf("Secret %s does not exist", name)}
	s, ok := c.(stepClient)
	if !ok {
		return missing
	}
	found, isCached, err := s.PastCache(ctx, read, corev1.SchemeGroupVersion.WithKind("Secret"), name)
	switch {
	case err != nil:
		return err
	case !isCached:
	case found == nil:
	case time.Since(found.CreationTimestamp.Time) > maxCacheDelay:
		missing.reason, missing.after = secretNotInCache, maxCacheDelay
		missing.message = fmt.Sprintf("Secret %s is not in the cache, although it exists: the cache's selector or namespaces leave it out; "+
			"give it the labels that the selector asks for, or widen the cache", name)
	default:
		missing.after = maxCacheDelay // if the cache excludes the Secret, no event comes
	}
	return missing
}

// Version returns the version of the Secret that a selector names: its UID and resource version. The version changes when the Secret
// changes. Version reads the metadata from the cache, without a request. If the Secret does not exist, or the selector lacks its name
// or its key, the error is a *[Error]. Other errors of the reader are wrapped.
func Version(ctx context.Context, c client.Reader, namespace string, selector corev1.SecretKeySelector) (string, error) {
	if err := incomplete(selector); err != nil {
		return "", err
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	name := client.ObjectKey{Namespace: namespace, Name: selector.Name}
	switch err := c.Get(ctx, name, metadata); {
	case apierrors.IsNotFound(err):
		return "", missingSecret(ctx, c, name, metadata)
	case err != nil:
		return "", fmt.Errorf("read metadata of Secret %s: %w", name, err)
	}
	return versionOf(metadata), nil
}

// Read returns the value that a selector names in a namespace, and the version of the Secret as in [Version]. It ignores the field
// Optional of the selector. If the Secret, its key or the value is missing, or the selector lacks its name or its key, the error is
// a *[Error]. Other errors of the reader are wrapped.
func Read(ctx context.Context, c client.Reader, namespace string, selector corev1.SecretKeySelector) (value Sensitive, version string, err error) {
	if err := incomplete(selector); err != nil {
		return nil, "", err
	}
	secret, err := get(ctx, c, client.ObjectKey{Namespace: namespace, Name: selector.Name})
	if err != nil {
		return nil, "", err
	}
	if value, err = secretValue(secret, selector.Key); err != nil {
		return nil, "", err
	}
	return value, versionOf(secret), nil
}

// get returns a Secret. If the Secret does not exist, the error is a *[Error].
func get(ctx context.Context, c client.Reader, name client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	switch err := c.Get(ctx, name, secret); {
	case apierrors.IsNotFound(err):
		return nil, missingSecret(ctx, c, name, secret)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}

// secretValue returns the value of a key. If the key does not exist, or its value is empty, the error is a *[Error].
func secretValue(secret *corev1.Secret, key string) (Sensitive, error) {
	name := client.ObjectKeyFromObject(secret)
	value, ok := secret.Data[key]
	switch {
	case !ok:
		return nil, &Error{reason: secretKeyNotFound, message: fmt.Sprintf("Secret %s has no key %q", name, key)}
	case len(value) == 0:
		return nil, &Error{reason: secretValueEmpty, message: fmt.Sprintf("the value of key %q in Secret %s is empty", key, name)}
	}
	return value, nil
}

// versionOf returns the same text as reconcile.VersionOf. The text changes whenever the Secret is changed, or deleted and created again.
func versionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

func incomplete(selector corev1.SecretKeySelector) error {
	if selector.Name == "" || selector.Key == "" {
		return &Error{reason: secretNotFound, message: "the reference to a Secret lacks its name or its key"}
	}
	return nil
}
