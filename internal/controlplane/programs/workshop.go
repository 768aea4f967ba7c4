package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
)

// workshop is the part of a checkout where programs are built.
type workshop struct {
	root     string // of the repository
	manifest []byte // hack/k8s/go.mod
}

func newWorkshop(root string) (*workshop, error) {
	manifest, err := os.ReadFile(filepath.Join(root, "hack", "k8s", "go.mod"))
	return &workshop{root: root, manifest: manifest}, err
}

func (w *workshop) bin(name string) string { return filepath.Join(w.root, "bin", "k8s", name) }

// version is a module's version in hack/k8s/go.mod, such as v1.36.3.
func (w *workshop) version(module string) string {
	line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`)
	if found := line.FindSubmatch(w.manifest); found != nil {
		return string(found[1])
	}
	return "v0.0.0"
}

// upToDate compares what a program would be built from with the key that was stored when it was built.
func (w *workshop) upToDate(p program) (bool, error) {
	want, err := w.key(p)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(w.bin(p.name)); err != nil {
		return false, nil
	}
	have, _ := os.ReadFile(w.keyFile(p))
	return string(have) == want, nil
}

func (w *workshop) keyFile(p program) string { return w.bin("." + p.name + ".key") }

func (w *workshop) key(p program) (string, error) {
	pattern := "hack/k8s/go.*"
	if p.module == ownModule {
		pattern = "internal/controlplane/supervis*/*.go"
	}
	files, err := filepath.Glob(filepath.Join(w.root, filepath.FromSlash(pattern)))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	key := sha256.New()
	fmt.Fprintln(key, runtime.Version(), runtime.GOOS, runtime.GOARCH, w.arguments(p))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(key, "%s %x\n", filepath.Base(file), sha256.Sum256(content))
	}
	return hex.EncodeToString(key.Sum(nil)), nil
}
