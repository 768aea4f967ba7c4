package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// folder is the root folder of the repository.
type folder string

func (f folder) changes() string { return filepath.Join(string(f), "hack", "api", "changes.txt") }

func (f folder) release(version string) string {
	return filepath.Join(string(f), "hack", "api", version+".txt")
}

var aVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// lastRelease returns the version and the API of the last release, from the one such file in hack/api.
func (f folder) lastRelease() (version string, api []string, err error) {
	files, err := filepath.Glob(f.release("v*"))
	if err != nil {
		return "", nil, err
	}
	if len(files) != 1 {
		return "", nil, fmt.Errorf("hack/api has %d releases (v….txt): keep the last one", len(files))
	}
	api, err = readLines(files[0])
	return strings.TrimSuffix(filepath.Base(files[0]), ".txt"), api, err
}

// writeRelease stores an API as the API of the last release, and removes the list of accepted changes.
func (f folder) writeRelease(version string, api []string) error {
	if !aVersion.MatchString(version) {
		return fmt.Errorf("%q is not a version: write it as v0.2.0", version)
	}
	former, err := filepath.Glob(f.release("v*"))
	if err != nil {
		return err
	}
	if err := writeLines(f.release(version), api); err != nil {
		return err
	}
	for _, file := range former {
		if file != f.release(version) {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return errors.Join(err, f.writeAccepted(nil))
}

// checkExact returns an error if an API differs from the API of this release in hack/api.
func (f folder) checkExact(version string, api []string) error {
	released, err := readLines(f.release(version))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hack/api/%s.txt does not exist: run make api RELEASE=%s", version, version)
	}
	if err != nil {
		return err
	}
	for _, line := range api {
		if !slices.Contains(released, line) {
			return fmt.Errorf("hack/api/%s.txt is not the API of this commit, which has %s: run make api RELEASE=%s", version, line, version)
		}
	}
	for _, line := range released {
		if !slices.Contains(api, line) {
			return fmt.Errorf("hack/api/%s.txt is not the API of this commit, which has not %s: run make api RELEASE=%s", version, line, version)
		}
	}
	return nil
}

// accepted returns the incompatible changes since the last release that a developer has accepted.
func (f folder) accepted() ([]string, error) {
	changes, err := readLines(f.changes())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return changes, err
}

// writeAccepted replaces the list of accepted changes. If there are none, it removes the file.
func (f folder) writeAccepted(changes []change) error {
	if len(changes) == 0 {
		if err := os.Remove(f.changes()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return writeLines(f.changes(), lines)
}

var unreleased = regexp.MustCompile(`(?ms)^## \[Unreleased\]\s*$(.*?)(?:^## |\z)`)

// unreleased returns the text of the section Unreleased in the changelog.
func (f folder) unreleased() (string, error) {
	text, err := os.ReadFile(filepath.Join(string(f), "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	section := unreleased.FindSubmatch(text)
	if section == nil {
		return "", errors.New("CHANGELOG.md has no section: write ## [Unreleased]")
	}
	return string(section[1]), nil
}

func readLines(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" }), nil
}

func writeLines(file string, lines []string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
