package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
)

// checkout is a checkout of the repository, in which the programs are built.
type checkout struct {
	root     string // of the repository
	manifest []byte // hack/k8s/go.mod
}

func newCheckout(root string) (*checkout, error) {
	manifest, err := os.ReadFile(filepath.Join(root, "hack", "k8s", "go.mod"))
	return &checkout{root: root, manifest: manifest}, err
}

func (c *checkout) bin(name string) string { return filepath.Join(c.root, "bin", "k8s", name) }

// version returns a module's version in hack/k8s/go.mod, such as v1.36.3.
func (c *checkout) version(module string) string {
	line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`)
	if found := line.FindSubmatch(c.manifest); found != nil {
		return string(found[1])
	}
	return "v0.0.0"
}

// upToDate reports whether a program was built from the same sources with the same arguments: its key was stored then.
func (c *checkout) upToDate(p program) (bool, error) {
	want, err := c.key(p)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(c.bin(p.name)); err != nil {
		return false, nil
	}
	have, _ := os.ReadFile(c.keyFile(p))
	return string(have) == want, nil
}

func (c *checkout) keyFile(p program) string { return c.bin("." + p.name + ".key") }

// key returns a hash of all that a program is built from.
func (c *checkout) key(p program) (string, error) {
	pattern := "hack/k8s/go.*"
	if p.module == ownModule {
		pattern = "reconcile/reconciletest/controlplane/supervis*/*.go"
	}
	files, err := filepath.Glob(filepath.Join(c.root, filepath.FromSlash(pattern)))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	key := sha256.New()
	flags := append(append([]string{"-trimpath", "-buildvcs=false"}, c.flags()...), p.source)
	fmt.Fprintln(key, runtime.Version(), runtime.GOOS, runtime.GOARCH, flags)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(key, "%s %x\n", filepath.Base(file), sha256.Sum256(content))
	}
	return hex.EncodeToString(key.Sum(nil)), nil
}

var minorVersion = regexp.MustCompile(`v?(\d+\.\d+)\.\d+`)

// asset returns the path of a program in the folder KUBEBUILDER_ASSETS of setup-envtest, if its minor version is the
// pinned one.
func (c *checkout) asset(ctx context.Context, p program) (path string, found bool) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return "", false
	}
	path = filepath.Join(folder, p.name)
	ask := []string{"--version"}
	if p.name == "kubectl" {
		ask = []string{"version", "--client"}
	}
	output, err := exec.CommandContext(ctx, path, ask...).Output()
	if err != nil {
		return "", false
	}
	have := minorVersion.FindSubmatch(output)
	want := minorVersion.FindStringSubmatch(c.version(p.module))
	return path, have != nil && want != nil && string(have[1]) == want[1]
}
