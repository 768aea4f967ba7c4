package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const library = "github.com/opblocks/opblocks"

var (
	aTag          = regexp.MustCompile(`^(?:(.*)/)?(v(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?)$`)
	unreleased    = regexp.MustCompile(`(?ms)^## \[Unreleased\]\s*$(.*?)(?:^## |^\[|\z)`)
	releaseHeader = `(?m)^## \[%s\] - \d{4}-\d{2}-\d{2}$`
)

// check returns what is wrong with the files of the repository for a release with this tag. If the release is of a nested module, the tag
// begins with the folder of the module.
func check(root fs.FS, readModule func(folder string) ([]byte, error), tag string) []string {
	parts := aTag.FindStringSubmatch(tag)
	if parts == nil {
		return []string{fmt.Sprintf("%q is not a tag: write it as v0.1.0, or for the module in examples as examples/v0.1.0", tag)}
	}
	folder, version := parts[1], parts[2]
	switch folder {
	case "":
		return append(checkModule(readModule, ".", ""), checkFiles(root, version)...)
	case "examples":
		return checkModule(readModule, folder, version)
	default:
		return []string{fmt.Sprintf("the module in %s is never tagged: only the library and examples are released", folder)}
	}
}

// checkModule returns what is wrong with a go.mod file. If version is not "", the module has to require this version of the library.
func checkModule(readModule func(folder string) ([]byte, error), folder, version string) (faults []string) {
	file := path.Join(folder, "go.mod")
	var module struct {
		Replace []struct{ Old struct{ Path string } }
		Require []struct{ Path, Version string }
	}
	text, err := readModule(folder)
	if err == nil {
		err = json.Unmarshal(text, &module)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", file, err)}
	}
	for _, replace := range module.Replace {
		faults = append(faults, fmt.Sprintf("%s replaces %s: go run and go install refuse a module with a replace directive", file, replace.Old.Path))
	}
	if version == "" {
		return faults
	}
	for _, require := range module.Require {
		if require.Path != library {
			continue
		}
		if require.Version != version {
			faults = append(faults, fmt.Sprintf("%s requires %s %s: run go get %[2]s@%[4]s in %[5]s", file, library, require.Version, version, folder))
		}
		return faults
	}
	return append(faults, fmt.Sprintf("%s does not require %s: run go get %[2]s@%[3]s in %[4]s", file, library, version, folder))
}

// checkFiles returns what is wrong with the changelog and the recorded API for this version.
func checkFiles(root fs.FS, version string) (faults []string) {
	changelog, err := fs.ReadFile(root, "CHANGELOG.md")
	if err != nil {
		return []string{err.Error()}
	}
	number := strings.TrimPrefix(version, "v")
	if !regexp.MustCompile(fmt.Sprintf(releaseHeader, regexp.QuoteMeta(number))).Match(changelog) {
		faults = append(faults, fmt.Sprintf("CHANGELOG.md has no section of the release: write ## [%s] - and the date, as 2006-01-02", number))
	}
	switch section := unreleased.FindSubmatch(changelog); {
	case section == nil:
		faults = append(faults, "CHANGELOG.md has no section for the next changes: write ## [Unreleased]")
	case strings.TrimSpace(string(section[1])) != "":
		faults = append(faults, fmt.Sprintf("CHANGELOG.md has changes under Unreleased: move them to the section %s", number))
	}
	if _, err := fs.Stat(root, "hack/api/"+version+".txt"); err != nil {
		faults = append(faults, fmt.Sprintf("hack/api/%s.txt does not exist: run make api RELEASE=%[1]s", version))
	}
	if _, err := fs.Stat(root, "hack/api/changes.txt"); !errors.Is(err, fs.ErrNotExist) {
		faults = append(faults, fmt.Sprintf("hack/api/changes.txt has changes since the last release: run make api RELEASE=%s", version))
	}
	return faults
}
