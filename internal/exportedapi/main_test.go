package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file of a repository.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRun changes the API of a module between two releases, and runs the program after each step.
func TestRun(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	root := t.TempDir()
	write(t, root, "go.mod", "module example.com/shop\n\ngo 1.26.0\n")
	write(t, root, "cart/cart.go", "package cart\n\nfunc Add() {}\n")
	write(t, root, "internal/db/db.go", "package db\n\nfunc Open() {}\n")
	write(t, root, "cmd/main.go", "package main\n\nfunc Main() {}\n\nfunc main() {}\n")
	write(t, root, "only/tests_test.go", "package only\n")
	write(t, root, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n\n- `Add`\n")

	steps := []struct {
		reason         string
		before         func()
		accept         bool
		release, exact string
		want           string // a part of the error; "" for no error
	}{
		{reason: "there is nothing to compare with", want: "hack/api has 0 releases"},
		{reason: "a version has three numbers", release: "0.1", want: `"0.1" is not a version`},
		{reason: "the API of the release has not been written", exact: "v0.1.0", want: "hack/api/v0.1.0.txt does not exist: run make api RELEASE=v0.1.0"},
		{reason: "the first release", release: "v0.1.0"},
		{reason: "nothing has changed"},
		{reason: "nothing has changed, also exactly", exact: "v0.1.0"},
		{reason: "an addition is compatible", before: func() { write(t, root, "cart/more.go", "package cart\n\nfunc Size() {}\n") }},
		{reason: "an addition is not in the release", exact: "v0.1.0", want: "is not the API of this commit, which has cart.Size func()"},
		{reason: "a change is reported", before: func() { write(t, root, "cart/cart.go", "package cart\n\nfunc Add(string) {}\n") },
			want: "incompatible change since v0.1.0: cart.Add was func() and is func(string)"},
		{reason: "the record", accept: true},
		{reason: "the changelog names Add only under a release", want: "CHANGELOG.md does not name cart.Add"},
		{reason: "recorded and described", before: func() { write(t, root, "CHANGELOG.md", "## [Unreleased]\n\n- `Add` takes a name.\n") }},
		{reason: "the next release begins without changes", release: "v0.2.0"},
		{reason: "it is compared with the last release only", exact: "v0.1.0", want: "does not exist"},
		{reason: "nothing has changed since", exact: "v0.2.0"},
		{reason: "no section Unreleased", before: func() { write(t, root, "CHANGELOG.md", "# Changelog\n") }, want: "CHANGELOG.md has no section"},
		{reason: "a package that does not compile", before: func() { write(t, root, "cart/cart.go", "package cart\n\nfunc Add(") }, want: "list the packages"},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		err := run(t.Context(), folder(root), step.accept, step.release, step.exact)
		if got := text(err); (step.want == "") != (err == nil) || !strings.Contains(got, step.want) {
			t.Errorf("%s: the error is %q, and should contain %q", step.reason, got, step.want)
		}
	}

	api, err := os.ReadFile(filepath.Join(root, "hack", "api", "v0.2.0.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "cart.Add func(string)\ncart.Size func()\n"; string(api) != want {
		t.Errorf("the API of v0.2.0 is %q, and should be %q: no internal packages, programs and tests", api, want)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
