package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestRefusalsQuoteNoObjects(t *testing.T) {
	err := withoutValues(apierrors.NewBadRequest(`spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`))
	require.Equal(t, "spec.template: Invalid value: {…}: field is immutable", err.Error())
	require.True(t, apierrors.IsBadRequest(err), "it is still the API server's")
}

// The API server of an older version does not know a field of ours.
func TestUnknownFieldOfAnApplyIsInvalid(t *testing.T) {
	err := unknownField(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownField(other), "other faults of the server are not ours")
}
