package main

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples"
)

func TestStorageVersion(t *testing.T) {
	tests := map[string]struct {
		crd, want string
		wrong     string // in the error
		reason    string
	}{
		"One":   {crd: "spec: {versions: [{name: v1alpha1, storage: true}]}", want: "v1alpha1", reason: "it is stored"},
		"Two":   {crd: "spec: {versions: [{name: v1beta1, storage: false}, {name: v1, storage: true}]}", want: "v1", reason: "the operator works on it"},
		"None":  {crd: "spec: {versions: [{name: v1}]}", wrong: "no version is stored", reason: "an API server refuses such a CRD"},
		"NoCRD": {crd: "spec: 1", wrong: "cannot unmarshal", reason: "it is not a CRD"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := storageVersion(fstest.MapFS{"crd.yaml": {Data: []byte(tc.crd)}}, "crd.yaml")
			if tc.wrong != "" {
				assert.ErrorContains(t, err, tc.wrong, tc.reason)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got, tc.reason)
		})
	}
}

// TestWithoutUses checks how much goes with a name that is left out.
func TestWithoutUses(t *testing.T) {
	const before = `package main

func main() {
	start(options{
		Port:   1,
		Server: webhookServer(), // the conversion
		Name:   "a",
	})
	if err := serveConversion(mgr); err != nil {
		return
	}
	run(mgr)
}
`
	const after = `package main

func main() {
	start(options{
		Port:   1,
		Name:   "a",
	})
	run(mgr)
}
`
	f, err := parse("main.go", []byte(before))
	require.NoError(t, err)
	same, err := withoutUses(f, map[string]bool{"absent": true})
	require.NoError(t, err)
	assert.Same(t, f, same)
	got, err := withoutUses(f, map[string]bool{"webhookServer": true, "serveConversion": true})
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(after, string(got.text)))
}

// TestLeaveOutConversion checks that the copy of an example with two versions has one, and nothing that only a conversion needs.
func TestLeaveOutConversion(t *testing.T) {
	n, err := namesOf(examples.Source, "memcached")
	require.NoError(t, err)
	assert.Equal(t, "v1", n.version)
	s, err := selectFiles(examples.Source, n)
	require.NoError(t, err)
	for _, f := range s.goFiles {
		assert.NotContains(t, f.name, "v1alpha1")
		assert.NotContains(t, string(f.text), "onversion", f.name)
	}
	for name, text := range s.others {
		assert.NotContains(t, string(text), "webhook", name)
	}
	assert.Contains(t, string(s.others["memcached/config/default/kustomization.yaml"]), "- ../manager\n", "the overlay without the conversion takes its place")
	assert.NotContains(t, s.others, "memcached/config/without-conversion/kustomization.yaml")
	overlay, err := fs.ReadFile(examples.Source, "memcached/config/default/kustomization.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(overlay), "webhook", "the example itself needs it")
}
