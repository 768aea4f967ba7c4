package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestModuleCollides checks paths with which the command go could not tell the packages of the copy from others. Its own messages are pages.
func TestModuleCollides(t *testing.T) {
	tests := map[string]struct {
		reason, module, want string
	}{
		"Required":  {"it would replace the module", "k8s.io/client-go", "since the new operator requires the module k8s.io/client-go"},
		"Within":    {"the path belongs to that module", "sigs.k8s.io/controller-runtime/shop", "since the new operator requires the module sigs.k8s.io/controller-runtime"},
		"Around":    {"a folder api would be in both", "k8s.io", "since the new operator requires the module k8s.io/"},
		"Standard":  {"main.go imports it", "fmt", "since Go's standard library has a package fmt"},
		"BesideIt":  {"the path is like a required one", "k8s.io/client-gone", ""},
		"OneWord":   {"it is allowed, for what is not published", "shop", ""},
		"OwnDomain": {"the usual one", "example.com/fmt", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := checkModule(tc.module); tc.want == "" {
				assert.NoError(t, err, tc.reason)
			} else {
				assert.ErrorContains(t, err, "-module "+tc.module+": choose another path, "+tc.want, tc.reason)
			}
		})
	}
}

// TestStandardLibrary compares the list with what the command go says.
func TestStandardLibrary(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "go", "list", "std").Output()
	require.NoError(t, err)
	for path := range strings.FieldsSeq(string(listed)) {
		first, _, _ := strings.Cut(path, "/")
		assert.True(t, slices.Contains(standardLibrary, first), path)
	}
}
