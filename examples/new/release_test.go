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
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReleased runs the command of a release, from a folder of its own and through a module proxy, as a user does. It then runs what
// the README of the copy names: generators, lint, the tests with a sample of the exploration, and the lifecycle on the real control
// plane. All of them run in the repository, too.
func TestReleased(t *testing.T) {
	r := release(t)
	folder := t.TempDir()
	output := runCommand(t, folder, r.environment, "go", "run", modulePath+"/new@"+r.version,
		"-from", "memcached", "-module", "example.com/shop", "-kind", "Shop")
	assert.Contains(t, output, "shop has the operator of kind Shop, of the API shop.example.com/v1alpha1")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1, "the module only")

	folder = filepath.Join(folder, "shop")
	manifest, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	require.NoError(t, err)
	assert.NotContains(t, string(manifest), "replace")
	assert.Contains(t, string(manifest), libraryPath+" "+r.version+"\n")
	assert.NotContains(t, string(manifest), "go-sql-driver", "another example needs it")
	assertRenamed(t, folder, "memcached")
	assertGenerated(t, folder, r.environment)
	runCommand(t, folder, r.environment, "make", "lint")
	runCommand(t, folder, r.environment, "make", "test", "ARGS=-short")
	runCommand(t, folder, r.environment, "go", "test", "-run", "^TestLifecycle$", "./test")
}

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
	r.environment = []string{
		"GOPROXY=file://" + filepath.ToSlash(proxy) + "," + others, "GONOSUMDB=" + libraryPath + "," + libraryPath + "/*",
		"GOFLAGS=" + strings.TrimSpace(flags+" -modcacherw"), // so that it can be removed
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
		w, err := archive.Create(path.Join(module+"@"+version, name))
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
