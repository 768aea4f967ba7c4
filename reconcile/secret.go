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

// The reasons of a [SecretError].
const (
	// SecretNotFound means that the Secret does not exist, or that the selector lacks its name or its key.
	SecretNotFound = "SecretNotFound"
	// SecretKeyNotFound means that the Secret does not have the key.
	SecretKeyNotFound = "SecretKeyNotFound"
	// SecretValueEmpty means that the value of the key is empty.
	SecretValueEmpty = "SecretValueEmpty"
)

// SecretError is the error for a Secret, a key or a value that is missing. Find it as a *SecretError with errors.As. It is a
// [Waiter] without a delay: with [Referencing] an event of the Secret triggers the next pass.
type SecretError struct {
	reason  string
	message string
}

func (e *SecretError) Error() string { return e.message }

// Waiting implements [Waiter]. The reason is [SecretNotFound], [SecretKeyNotFound] or [SecretValueEmpty], and the delay is 0.
func (e *SecretError) Waiting() (reason string, after time.Duration) { return e.reason, 0 }

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
		return "", &SecretError{SecretNotFound, fmt.Sprintf("Secret %s does not exist", name)}
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
		return nil, "", &SecretError{SecretNotFound, fmt.Sprintf("Secret %s does not exist", name)}
	case err != nil:
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	value, ok := secret.Data[selector.Key]
	switch {
	case !ok:
		return nil, "", &SecretError{SecretKeyNotFound, fmt.Sprintf("Secret %s has no key %q", name, selector.Key)}
	case len(value) == 0:
		return nil, "", &SecretError{SecretValueEmpty, fmt.Sprintf("the value of key %q in Secret %s is empty", selector.Key, name)}
	}
	return value, VersionOf(&secret), nil
}

func incomplete(selector corev1.SecretKeySelector) error {
	if selector.Name == "" || selector.Key == "" {
		return &SecretError{SecretNotFound, "the reference to a Secret lacks its name or its key"}
	}
	return nil
}
