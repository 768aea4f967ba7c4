package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// forgetfulShop drops the fields that its version cannot hold.
type forgetfulShop struct{ AlphaShop }

func (s *forgetfulShop) ConvertFrom(src conversion.Hub) error {
	s.Spec.Size = src.(*StableShop).Spec.Replicas
	return nil
}

func TestRoundTripFails(t *testing.T) {
	failed := new(testing.T)
	reconciletest.RoundTrip(failed, &StableShop{}, &forgetfulShop{})
	require.True(t, failed.Failed())
}
