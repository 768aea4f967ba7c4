package v1alpha1_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

const annotation = "cache.example.com/memory"

func TestRoundTrip(t *testing.T) {
	reconciletest.RoundTrip(t, &cachev1.Memcached{}, &cachev1alpha1.Memcached{}, func(s *cachev1.MemcachedSpec, c randfill.Continue) {
		c.FillNoCustom(s)
		texts := []string{"", "1Mi", "64Mi", "1Gi", "1Ti", "1.5Mi", "1500M", "67108865", "67108864001m", fmt.Sprintf("%dKi", 1024+c.Intn(1<<20))}
		if s.Memory = nil; c.Bool() {
			s.Memory = memory(texts[c.Intn(len(texts))])
		}
	})
}

// TestMemory converts what a v1 object has to v1alpha1, lets a user edit that, and converts it back.
func TestMemory(t *testing.T) {
	keep := func(*cachev1alpha1.Memcached) {}
	set := func(megabytes int32) func(*cachev1alpha1.Memcached) {
		return func(m *cachev1alpha1.Memcached) { m.Spec.MemoryMB = megabytes }
	}
	annotate := func(megabytes int32, text string) func(*cachev1alpha1.Memcached) {
		return func(m *cachev1alpha1.Memcached) {
			m.Spec.MemoryMB, m.Annotations = megabytes, map[string]string{annotation: text}
		}
	}
	tests := map[string]struct {
		memory string
		shown  int32
		kept   string // the annotation
		edit   func(*cachev1alpha1.Memcached)
		want   string
		reason string
	}{
		"unset":                 {edit: keep, reason: "the operator has the default, and not the object"},
		"whole megabytes":       {memory: "64Mi", shown: 64, edit: keep, want: "64Mi", reason: "memoryMB says it all"},
		"in another unit":       {memory: "65536Ki", shown: 64, edit: keep, want: "64Mi", reason: "it is the same quantity"},
		"a gigabyte":            {memory: "1Gi", shown: 1024, edit: keep, want: "1Gi", reason: "memoryMB says it all"},
		"the largest":           {memory: "1Ti", shown: 1 << 20, edit: keep, want: "1Ti", reason: "the bounds of both versions are the same"},
		"a fraction":            {memory: "1.5Mi", shown: 1, kept: "1536Ki", edit: keep, want: "1536Ki", reason: "v1alpha1 cannot hold it"},
		"decimal":               {memory: "100M", shown: 95, kept: "100M", edit: keep, want: "100M", reason: "v1alpha1 cannot hold it"},
		"edited":                {memory: "100M", shown: 95, kept: "100M", edit: set(96), want: "96Mi", reason: "the annotation is older than the edit"},
		"removed":               {memory: "100M", shown: 95, kept: "100M", edit: set(0), reason: "the user wants the default"},
		"forged too large":      {memory: "1Ti", shown: 1 << 20, edit: annotate(1<<20, "1048576.5Mi"), want: "1Ti", reason: "no schema checks an annotation"},
		"forged too small":      {memory: "1Mi", shown: 1, edit: annotate(0, "0.5Mi"), reason: "memcached does not start with no memory"},
		"forged without memory": {edit: annotate(0, "0"), reason: "memcached does not start with no memory"},
		"no quantity":           {memory: "1Mi", shown: 1, edit: annotate(1, "much"), want: "1Mi", reason: "an error would refuse every list of Memcacheds"},
		"two points":            {memory: "1Mi", shown: 1, edit: annotate(1, "1.0.0Mi"), want: "1Mi", reason: "an error would refuse every list of Memcacheds"},
		"a large exponent":      {memory: "1Mi", shown: 1, edit: annotate(1, "1e999999999"), want: "1Mi", reason: "half a minute to parse it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from, to := &cachev1.Memcached{Spec: cachev1.MemcachedSpec{Memory: memory(tc.memory)}}, &cachev1.Memcached{}
			alpha := &cachev1alpha1.Memcached{}
			require.NoError(t, alpha.ConvertFrom(from))
			assert.Equal(t, tc.shown, alpha.Spec.MemoryMB, tc.reason)
			assert.Equal(t, tc.kept, alpha.Annotations[annotation], tc.reason)

			tc.edit(alpha)
			require.NoError(t, alpha.ConvertTo(to))
			got := ""
			if to.Spec.Memory != nil {
				got = to.Spec.Memory.String()
			}
			assert.Equal(t, tc.want, got, tc.reason)
			assert.NotContains(t, to.Annotations, annotation, "it is v1alpha1's alone")
		})
	}
}

// TestForeignAnnotation covers a user of v1 who has written the annotation: v1 does not read it.
func TestForeignAnnotation(t *testing.T) {
	from := &cachev1.Memcached{Spec: cachev1.MemcachedSpec{Memory: memory("64Mi")}}
	from.Annotations = map[string]string{annotation: "64.5Mi"}
	alpha, to := &cachev1alpha1.Memcached{}, &cachev1.Memcached{}
	require.NoError(t, alpha.ConvertFrom(from))
	require.NoError(t, alpha.ConvertTo(to))
	assert.Equal(t, "64Mi", to.Spec.Memory.String())
	assert.Equal(t, "64.5Mi", from.Annotations[annotation], "a conversion does not change what it reads")
}

// TestServedAsBefore compares v1alpha1 with the CRD of the operator that had no other version.
func TestServedAsBefore(t *testing.T) {
	before, now := version(t, "../../test/testdata/crd_v1alpha1_only.yaml"), version(t, "../../config/crd/bases/cache.example.com_memcacheds.yaml")
	assert.Equal(t, true, now["deprecated"])
	assert.Equal(t, false, now["storage"], "v1 is stored")
	for _, key := range []string{"deprecated", "deprecationWarning", "storage"} {
		delete(before, key)
		delete(now, key)
	}
	assert.Empty(t, cmp.Diff(before, now))
}

// version returns v1alpha1 of a CRD.
func version(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []map[string]any `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &crd))
	for _, v := range crd.Spec.Versions {
		if v["name"] == cachev1alpha1.GroupVersion.Version {
			return v
		}
	}
	require.Fail(t, "the CRD has no v1alpha1", file)
	return nil
}

func memory(text string) *cachev1.Quantity {
	if text == "" {
		return nil
	}
	return &cachev1.Quantity{Quantity: resource.MustParse(text)}
}
