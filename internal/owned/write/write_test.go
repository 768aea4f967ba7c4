package write

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An API server of an older version does not have the field.
func TestUnknownFieldAsInvalid(t *testing.T) {
	err := unknownFieldAsInvalid(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownFieldAsInvalid(other), "other errors of the server stay as they are")
}

func TestWithoutValues(t *testing.T) {
	err := WithoutValues(apierrors.NewBadRequest(`spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`))
	require.Equal(t, "spec.template: Invalid value: {…}: field is immutable", err.Error())
	require.True(t, apierrors.IsBadRequest(err), "it still is the API server's error")
}

func TestWithSizeRemedy(t *testing.T) {
	for _, err := range []error{
		errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max"),
		errors.New("etcdserver: request is too large"),
		apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	} {
		require.ErrorIs(t, WithSizeRemedy(err), err)
		require.ErrorContains(t, WithSizeRemedy(err), "split the object")
	}
	other := errors.New("etcdserver: leader changed")
	require.Equal(t, other, WithSizeRemedy(other))
	require.NoError(t, WithSizeRemedy(nil))
}
