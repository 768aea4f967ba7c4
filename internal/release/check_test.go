package main

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	const (
		described    = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n\n- all\n\n[0.1.0]: https://example.com\n"
		noReplace    = `{"Require": [{"Path": "github.com/opblocks/opblocks", "Version": "v0.1.0"}]}`
		localLibrary = `{"Require": [{"Path": "github.com/opblocks/opblocks", "Version": "v0.0.0"}], "Replace": [{"Old": {"Path": "github.com/opblocks/opblocks"}}]}`
	)
	tests := map[string]struct {
		reason string
		tag    string
		files  map[string]string
		module string // the go.mod as JSON; "" if it cannot be read
		want   []string
	}{
		"Ready":       {"all is there", "v0.1.0", map[string]string{"CHANGELOG.md": described, "hack/api/v0.1.0.txt": "x"}, noReplace, nil},
		"NoVersion":   {"Go knows versions of three numbers", "v0.1", nil, noReplace, []string{`"v0.1" is not a tag: write it as v0.1.0, or for the module in examples as examples/v0.1.0`}},
		"PreRelease":  {"a release candidate has a section of its own", "v0.1.0-rc.1", map[string]string{"CHANGELOG.md": "## [Unreleased]\n## [0.1.0-rc.1] - 2026-01-02\n", "hack/api/v0.1.0-rc.1.txt": "x"}, noReplace, nil},
		"NeverTagged": {"benchmarks and pinned programs are for this repository", "hack/lint/v0.1.0", nil, noReplace, []string{"the module in hack/lint is never tagged: only the library and examples are released"}},
		"NoDate": {"the changelog says when", "v0.1.0", map[string]string{"CHANGELOG.md": "## [Unreleased]\n## [0.1.0] - unreleased\n", "hack/api/v0.1.0.txt": "x"}, noReplace,
			[]string{"CHANGELOG.md has no section of the release: write ## [0.1.0] - and the date, as 2006-01-02"}},
		"Unreleased": {"what is in the release is not unreleased", "v0.1.0", map[string]string{"CHANGELOG.md": "## [Unreleased]\n- more\n" + described, "hack/api/v0.1.0.txt": "x"}, noReplace,
			[]string{"CHANGELOG.md has changes under Unreleased: move them to the section 0.1.0"}},
		"NoUnreleased": {"the next change has a place", "v0.1.0", map[string]string{"CHANGELOG.md": "## [0.1.0] - 2026-01-02\n", "hack/api/v0.1.0.txt": "x"}, noReplace,
			[]string{"CHANGELOG.md has no section for the next changes: write ## [Unreleased]"}},
		"NoAPI": {"the next release is compared with it", "v0.1.0", map[string]string{"CHANGELOG.md": described}, noReplace,
			[]string{"hack/api/v0.1.0.txt does not exist: run make api RELEASE=v0.1.0"}},
		"AcceptedChanges": {"they are since the release before", "v0.1.0", map[string]string{"CHANGELOG.md": described, "hack/api/v0.1.0.txt": "x", "hack/api/changes.txt": "y"}, noReplace,
			[]string{"hack/api/changes.txt has changes since the last release: run make api RELEASE=v0.1.0"}},
		"Replace": {"nobody else has the folder", "v0.1.0", map[string]string{"CHANGELOG.md": described, "hack/api/v0.1.0.txt": "x"}, localLibrary,
			[]string{"go.mod replaces github.com/opblocks/opblocks: go run and go install refuse a module with a replace directive"}},
		"Unreadable": {"the go command explains it", "examples/v0.1.0", nil, "", []string{"examples/go.mod: no Go"}},
		"Examples":   {"the changelog is the library's", "examples/v0.1.0", nil, noReplace, nil},
		"ExamplesOfAnotherVersion": {"examples are released with the library that they show", "examples/v0.1.0", nil, localLibrary, []string{
			"examples/go.mod replaces github.com/opblocks/opblocks: go run and go install refuse a module with a replace directive",
			"examples/go.mod requires github.com/opblocks/opblocks v0.0.0: run go get github.com/opblocks/opblocks@v0.1.0 in examples",
		}},
		"ExamplesWithoutLibrary": {"examples use the library", "examples/v0.1.0", nil, `{}`,
			[]string{"examples/go.mod does not require github.com/opblocks/opblocks: run go get github.com/opblocks/opblocks@v0.1.0 in examples"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range tc.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			read := func(string) ([]byte, error) {
				if tc.module == "" {
					return nil, errors.New("no Go")
				}
				return []byte(tc.module), nil
			}
			if diff := cmp.Diff(tc.want, check(root, read, tc.tag)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
