package memoryserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCRDs(t *testing.T) {
	tests := map[string]struct {
		reason string
		option Option
		want   string
	}{
		"NoSuchPath":   {"the path is misspelt", CRDs("testdata/none"), "no such file"},
		"NoDefinition": {"the generator has not run, or writes elsewhere", CRDs("."), "no custom resource definition in .: name the folder or file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(testScheme, tc.option)
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}
