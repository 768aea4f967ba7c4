package reconcile

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
)

// Sensitive is a value that logs, errors and JSON show as "(hidden)". Convert it to []byte or string where it is used. Do not
// keep it in an unexported field of a struct that is printed: package fmt does not call its methods there.
type Sensitive []byte

const hidden = "(hidden)"

// String returns "(hidden)".
func (Sensitive) String() string { return hidden }

// Format writes "(hidden)", whatever the verb.
func (Sensitive) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText returns "(hidden)".
func (Sensitive) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// SecretError is the error for a Secret, a key or a value that is missing. Find it as a *SecretError with errors.As. It is a
// [Waiter], in general without a delay: with [NamedStep.Reads] an event of the Secret triggers the next pass. The delay is a minute if the
// cache does not show a Secret that exists.
//
// Its reason is one of these:
//
//   - SecretNotFound, if the Secret does not exist, or the selector lacks its name or its key;
//   - SecretNotInCache, if the Secret exists for more than a minute, and the cache's selector or namespaces leave it out: no change of it would
//     trigger a pass;
//   - SecretKeyNotFound, if the Secret does not have the key;
//   - SecretValueEmpty, if the value of the key is empty.
type SecretError struct {
	reason  string
	message string
	after   time.Duration
}

func (e *SecretError) Error() string { return e.message }

// Waiting implements [Waiter]. The delay is 0 or a minute.
func (e *SecretError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }

const (
	secretNotFound    = "SecretNotFound"
	secretNotInCache  = "SecretNotInCache"
	secretKeyNotFound = "SecretKeyNotFound"
	secretValueEmpty  = "SecretValueEmpty"
)

// maxCacheDelay is how far a cache may be behind. An object that it has not shown for longer is left out of it.
const maxCacheDelay = time.Minute

// missingSecret returns the error for a Secret that was not found. If it was not found in the cache, the Secret may exist.
func missingSecret(ctx context.Context, c client.Reader, name client.ObjectKey, read client.Object) error {
	missing := &SecretError{reason: secretNotFound, message: fmt.Sprintf("Secret %s does not exist", name)}
	s, ok := c.(*stepClient)
	if !ok || s.reader.Live == nil || !s.reader.InCache(read) {
		return missing
	}
	found := references.PastCache(ctx, s.reader.Live, corev1.SchemeGroupVersion.WithKind("Secret"), name)
	switch {
	case found == nil:
	case time.Since(found.CreationTimestamp.Time) > maxCacheDelay:
		missing.reason, missing.after = secretNotInCache, maxCacheDelay
		missing.message = fmt.Sprintf("Secret %s is not in the cache, although it exists: the cache's selector or namespaces leave it out; "+
			"give it the labels that the selector asks for, or widen the cache", name)
	default:
		missing.after = maxCacheDelay // no event comes if the cache leaves it out
	}
	return missing
}

// SecretVersion returns the [VersionOf] of the Secret that a selector names, which shows whether the Secret has changed. It
// reads the metadata from the cache, without a request. If the Secret does not exist, or the selector lacks its name or its
// key, the error is a *[SecretError]. Other errors of the reader are wrapped.
func SecretVersion(ctx context.Context, c client.Reader, namespace string, selector corev1.SecretKeySelector) (string, error) {
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
	return VersionOf(metadata), nil
}

// ReadSecret returns the value that a selector names in a namespace, and the [VersionOf] of the Secret that it was read
// from. The field Optional of the selector is ignored. If the Secret, its key or the value is missing, or the selector lacks
// its name or its key, the error is a *[SecretError]. Other errors of the reader are wrapped.
func ReadSecret(ctx context.Context, c client.Reader, namespace string, selector corev1.SecretKeySelector) (value Sensitive, version string, err error) {
	if err := incomplete(selector); err != nil {
		return nil, "", err
	}
	name := client.ObjectKey{Namespace: namespace, Name: selector.Name}
	var secret corev1.Secret
	err = c.Get(ctx, name, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", missingSecret(ctx, c, name, &secret)
	case err != nil:
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	value, ok := secret.Data[selector.Key]
	switch {
	case !ok:
		return nil, "", &SecretError{reason: secretKeyNotFound, message: fmt.Sprintf("Secret %s has no key %q", name, selector.Key)}
	case len(value) == 0:
		return nil, "", &SecretError{reason: secretValueEmpty, message: fmt.Sprintf("the value of key %q in Secret %s is empty", selector.Key, name)}
	}
	return value, VersionOf(&secret), nil
}

func incomplete(selector corev1.SecretKeySelector) error {
	if selector.Name == "" || selector.Key == "" {
		return &SecretError{reason: secretNotFound, message: "the reference to a Secret lacks its name or its key"}
	}
	return nil
}
