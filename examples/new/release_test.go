//go:build !race

// Programs are built and run here, which the race detector does not see.

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copyChecks returns commands that check a copy of memcached from its folder: nothing is beside it, its code is in order, its tests pass with
// -short, and one passes on a real control plane. They first copy the folder to copied, which must not exist. The page has tested the controller
// before, and the options of the manager are tested in the repository.
func copyChecks(copied string) string {
	return `diff <(echo shop) <(ls -A ..)
cp -r . '` + copied + `'
make lint
go test -c -o bin/lifecycle ./test
(cd test && ../bin/lifecycle -test.short && ../bin/lifecycle -test.run='^TestLifecycle$/^Default$')
rm -r bin
diff -r '` + copied + `' .
`
}

// assertReleased asserts that a copy of memcached requires a released version.
func assertReleased(t *testing.T, copied, version string) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(copied, "go.mod"))
	require.NoError(t, err)
	assert.NotContains(t, string(manifest), "replace")
	assert.Contains(t, string(manifest), libraryPath+" "+version+"\n")
	assert.NotContains(t, string(manifest), "go-sql-driver", "another example needs it")
}

// fewFacts is a program by which the command go runs its tools. It makes go vet read the module that is vetted and the library, and skip the
// 1,100 other dependencies. From those, vet would learn only which functions print by a format or never return. It knows the functions of the
// standard library that print.
const fewFacts = `#!/bin/sh
for last; do :; done
case "$1 $last" in
*/vet\ -V=full) # the version is a part of the key by which results are cached
	echo "$("$@")-few-facts"
	exit
	;;
*/vet\ *.cfg)
	if grep -q '"VetxOnly": true' "$last" && ! grep -Eq '"ModulePath": "(github.com/opblocks/|example.com/)' "$last"; then
		: >"${last%.cfg}.out"
		exit
	fi
	;;
esac
exec "$@"
`

// released is a version of the library and of the examples, made from the checkout.
type released struct {
	version     string
	environment []string // with which the command go finds it
}

// release makes a release of the checkout in a module proxy of files. Its version is of the content, since the command go keeps what
// it downloads in the user's module cache. What it keeps is removed from there when the test ends.
func release(t *testing.T) *released {
	t.Helper()
	library, nested := moduleFiles(t, checkout), moduleFiles(t, filepath.Join(checkout, "examples"))
	sum := sha256.New()
	for _, files := range []map[string][]byte{library, nested} {
		for _, name := range sortedKeys(files) {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(files[name]), files[name])
		}
	}
	r := &released{version: "v0.1.0-test." + "x" + hex.EncodeToString(sum.Sum(nil))[:12]}
	selected := librarySelected.FindSubmatch(nested["go.mod"])
	require.NotNil(t, selected)
	nested["go.mod"] = bytes.Replace(nested["go.mod"], selected[0], []byte("\t"+libraryPath+" "+r.version), 1)

	proxy := t.TempDir()
	publish(t, proxy, libraryPath, r.version, library)
	publish(t, proxy, modulePath, r.version, nested)
	cache := strings.TrimSpace(runCommand(t, proxy, nil, "go", "env", "GOMODCACHE"))
	others := strings.TrimSpace(runCommand(t, proxy, nil, "go", "env", "GOPROXY"))
	flags := strings.TrimSpace(runCommand(t, proxy, nil, "go", "env", "GOFLAGS"))
	tools := filepath.Join(t.TempDir(), "tools")
	require.NoError(t, os.WriteFile(tools, []byte(fewFacts), 0o755))
	// The commands run without -count: their second run of a test shows the result of the first.
	flags = regexp.MustCompile(`-count=\S+`).ReplaceAllString(flags, "")
	r.environment = []string{
		"GOPROXY=file://" + filepath.ToSlash(proxy) + "," + others, "GONOSUMDB=" + libraryPath + "," + libraryPath + "/*",
		// With -modcacherw it can be removed. The page's make lint runs go vet. With the timeout of make test, what has passed once is not run again.
		// Programs without debug information are linked in half the time.
		"GOFLAGS=" + strings.TrimSpace(flags+" -modcacherw -vet=off -timeout=30m -ldflags=-s -toolexec="+tools),
	}
	t.Cleanup(func() {
		for _, module := range []string{libraryPath, modulePath} {
			_ = os.RemoveAll(filepath.Join(cache, module+"@"+r.version))
			downloads, _ := filepath.Glob(filepath.Join(cache, "cache", "download", module, "@v", r.version+".*"))
			for _, file := range downloads {
				_ = os.Remove(file)
			}
		}
	})
	return r
}

// moduleFiles returns the files of a module, as the command go takes them from a repository.
func moduleFiles(t *testing.T, root string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "bin"):
			return fs.SkipDir
		case entry.IsDir() && name != ".":
			if _, err := os.Stat(filepath.Join(root, name, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		case entry.Type().IsRegular() && name != ".git":
			files[name], err = os.ReadFile(filepath.Join(root, name))
		}
		return err
	}))
	return files
}

// publish writes a version of a module to a proxy.
func publish(t *testing.T, proxy, module, version string, files map[string][]byte) {
	t.Helper()
	folder := filepath.Join(proxy, module, "@v")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for _, name := range sortedKeys(files) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: path.Join(module+"@"+version, name), Method: zip.Store})
		require.NoError(t, err)
		_, err = w.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	for name, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version":"` + version + `"}`), version + ".mod": files["go.mod"], version + ".zip": content.Bytes(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o644))
	}
}

func sortedKeys(files map[string][]byte) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
