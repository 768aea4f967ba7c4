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

// Sensitive is a value that does not print: not in logs, errors or JSON. Convert it to []byte or
// string where it is used, and keep it out of unexported fields of what is printed: package fmt
// cannot ask it there.
type Sensitive []byte

const hidden = "(hidden)"

// String does not tell the value.
func (Sensitive) String() string { return hidden }

// Format does not tell the value, whatever the verb.
func (Sensitive) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText does not tell the value.
func (Sensitive) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// The reasons of a [SecretError].
const (
	SecretNotFound    = "SecretNotFound"
	SecretKeyNotFound = "SecretKeyNotFound"
	SecretValueEmpty  = "SecretValueEmpty"
)

// SecretError says what a selector's value lacks. It is a [Waiter]: with [Referencing] the event of
// the Secret brings the next pass.
type SecretError struct {
	reason  string
	message string
}

func (e *SecretError) Error() string { return e.message }

// Waiting gives [SecretNotFound], [SecretKeyNotFound] or [SecretValueEmpty], and no delay.
func (e *SecretError) Waiting() (reason string, after time.Duration) { return e.reason, 0 }

// SecretVersion gives the [VersionOf] of the Secret that a selector names, from the cache's metadata: to
// see whether it has changed, without a request. One that is missing is a [SecretError].
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

// ReadSecret reads what a selector points to, in the namespace given, and the [VersionOf] of the
// Secret that it was read from. The selector's Optional is ignored. What is missing is a
// [SecretError]; other errors are the client's.
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
