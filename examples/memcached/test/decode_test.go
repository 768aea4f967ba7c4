package test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// TestQuantities checks that the API server refuses the quantities that Go cannot decode, or that cost much to compute with:
// one such object would keep the operator from listing the Memcacheds of all namespaces.
func TestQuantities(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	tests := map[string]struct {
		quantity any
		refused  bool
		reason   string
	}{
		"thousandths":       {quantity: "100m", reason: "half of all CPU requests are written so"},
		"binary":            {quantity: "1Gi", reason: "memory is written so"},
		"decimals":          {quantity: "1.5", reason: "a number"},
		"less than one":     {quantity: "0.5", reason: "a number"},
		"no leading zero":   {quantity: ".5", reason: "Go decodes it"},
		"exponent":          {quantity: "1e3", reason: "Go decodes it"},
		"signed exponent":   {quantity: "+15E-1", reason: "Go decodes it"},
		"number":            {quantity: 2, reason: "YAML without quotes"},
		"large number":      {quantity: int64(1) << 40, reason: "bytes without a suffix exceed an int32"},
		"megabytes":         {quantity: "500M", reason: "memory is written so"},
		"exa":               {quantity: "1E", reason: "a suffix, not an exponent"},
		"decimal exponent":  {quantity: "1e1.5", refused: true, reason: "Go cannot decode it"},
		"overflow":          {quantity: "1e99999999999999999999", refused: true, reason: "Go cannot decode it"},
		"immense":           {quantity: "1e999999999", refused: true, reason: "the API server would compute with a number of a billion digits"},
		"tiny":              {quantity: "1e-999999999", refused: true, reason: "the same"},
		"three digits":      {quantity: "1e100", refused: true, reason: "nobody has as much"},
		"many digits":       {quantity: "1234567890123456789", refused: true, reason: "19 digits may exceed an int64"},
		"many decimals":     {quantity: "0.1234567890", refused: true, reason: "nano is the smallest unit"},
		"no number":         {quantity: "much", refused: true, reason: "Go cannot decode it"},
		"no digits":         {quantity: ".", refused: true, reason: "Go cannot decode it"},
		"fractional number": {quantity: 0.5, refused: true, reason: "a number without quotes is an integer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, list := range []string{"limits", "requests"} {
				want := ""
				if tc.refused {
					want = "spec.resources." + list + ".cpu"
				}
				resources := map[string]any{list: map[string]any{"cpu": tc.quantity}}
				u.AssertAdmission(t, kind, map[string]any{"size": 1, "resources": resources}, want, tc.reason)
			}
		})
	}
	require.NoError(t, u.List(t.Context(), &cachev1.MemcachedList{}, client.InNamespace(u.Namespace)), "the operator decodes all that were accepted")
}

// TestStatusDecodes checks the same of the status, which others than the operator may have the right to write.
func TestStatusDecodes(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	at := func(time string) map[string]any {
		return map[string]any{"nodes": []any{}, "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Tested", "message": "", "lastTransitionTime": time,
		}}}
	}
	tests := map[string]struct {
		status map[string]any
		want   string // in the error; empty if it is accepted
		reason string
	}{
		"time":               {status: at("2020-01-01T00:00:00Z"), reason: "as the operator writes it"},
		"time in a zone":     {status: at("2020-01-01T00:00:00.5+01:00"), reason: "Go decodes it"},
		"letter in seconds":  {status: at("2020-01-01T00:00:00x5Z"), want: "status.conditions", reason: "format date-time accepts it, and Go does not"},
		"small letters":      {status: at("2020-01-01t00:00:00z"), want: "status.conditions", reason: "format date-time accepts it, and Go does not"},
		"replicas overflow":  {status: map[string]any{"nodes": []any{}, "readyReplicas": int64(1) << 32}, want: "status.readyReplicas", reason: "Go has an int32"},
		"generation as text": {status: map[string]any{"nodes": []any{}, "observedGeneration": "1"}, want: "status.observedGeneration", reason: "Go has an int64"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := u.Untyped(kind, map[string]any{"size": 1})
			require.NoError(t, u.Create(t.Context(), m))
			patch, err := json.Marshal(map[string]any{"status": tc.status})
			require.NoError(t, err)
			err = u.Status().Patch(t.Context(), m, client.RawPatch(types.MergePatchType, patch))
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
	require.NoError(t, u.List(t.Context(), &cachev1.MemcachedList{}, client.InNamespace(u.Namespace)), "the operator decodes all that were accepted")
}
