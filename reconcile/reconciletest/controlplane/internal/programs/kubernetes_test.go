package programs

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPinnedVersions(t *testing.T) {
	for _, module := range []string{kubernetesModule, etcdModule, kwokModule} {
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, versionIn(pinnedMod, module), module)
		assert.NotEqual(t, "v0.0.0", versionIn(pinnedMod, module), module)
	}
}

func TestVersion(t *testing.T) {
	tests := map[string]struct{ reason, option, variable, want, err string }{
		"Pinned":   {reason: "it is the default", want: pinnedVersion()},
		"Variable": {reason: "a whole suite runs on another version", variable: "v1.34.2", want: "v1.34.2"},
		"Option":   {reason: "the code knows better than the environment", option: "v1.35.0", variable: "v1.34.2", want: "v1.35.0"},
		"Candidate": {
			reason: "releases can be tried before they are out", variable: "v1.37.0-rc.1", want: "v1.37.0-rc.1",
		},
		"MinorOnly": {
			reason: "the programs must not change by themselves", variable: "v1.34",
			err: `"v1.34" is no version of Kubernetes: name a release such as ` + pinnedVersion() + "; `go list -m -versions k8s.io/kubernetes` lists them",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(VersionVariable, tc.variable)
			got, err := Version(tc.option)
			if tc.err != "" {
				assert.EqualError(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got, tc.reason)
		})
	}
}

func TestManifestFor(t *testing.T) {
	var kubernetes manifest
	require.NoError(t, json.Unmarshal([]byte(`{
		"Module": {"Path": "k8s.io/kubernetes"}, "Go": "1.24.0",
		"Require": [
			{"Path": "go.etcd.io/etcd/api/v3", "Version": "v3.6.4"},
			{"Path": "go.etcd.io/etcd/client/v3", "Version": "v3.6.4"},
			{"Path": "k8s.io/api", "Version": "v0.0.0"}
		],
		"Replace": [
			{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
			{"Old": {"Path": "example.com/fork"}, "New": {"Path": "example.com/other", "Version": "v1.0.0"}}
		]
	}`), &kubernetes))
	want := `module kubernetes

go 1.26.0

require k8s.io/kubernetes v1.34.2

require go.etcd.io/etcd/server/v3 v3.6.4

replace k8s.io/api => k8s.io/api v0.34.2
`
	assert.Empty(t, cmp.Diff(want, string(manifestFor("v1.34.2", kubernetes))))
}

func TestFolderOfVersion(t *testing.T) {
	pinned, err := kubernetes(pinnedVersion()).folder()
	require.NoError(t, err)
	assert.Contains(t, pinned, "/"+pinnedVersion()+"-")
	other, err := kubernetes("v1.34.2").folder()
	require.NoError(t, err)
	assert.Contains(t, other, "/v1.34.2-")
}
