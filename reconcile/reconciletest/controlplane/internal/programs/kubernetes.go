package programs

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the pinned versions
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// VersionVariable is the environment variable that chooses a version of Kubernetes.
const VersionVariable = "OPBLOCKS_KUBERNETES"

var (
	//go:embed k8s.mod
	pinnedMod []byte
	//go:embed k8s.sum
	pinnedSum []byte
)

var releaseVersion = regexp.MustCompile(`^v1\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// Version returns the version of Kubernetes to use, such as v1.36.3. If the given version is empty, it takes the environment variable
// OPBLOCKS_KUBERNETES. If that is not set, it returns the pinned version.
func Version(version string) (string, error) {
	if version == "" {
		version = os.Getenv(VersionVariable)
	}
	if version == "" {
		return pinnedVersion(), nil
	}
	if !releaseVersion.MatchString(version) {
		return "", fmt.Errorf("%q is no version of Kubernetes: name a release such as %s; `go list -m -versions %s` lists them",
			version, pinnedVersion(), kubernetesModule)
	}
	return version, nil
}

var pinnedVersion = sync.OnceValue(func() string { return versionIn(pinnedMod, kubernetesModule) })

// versionIn returns the version of a module that a go.mod file requires, such as v1.36.3.
func versionIn(manifest []byte, module string) string {
	line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`)
	if found := line.FindSubmatch(manifest); found != nil {
		return string(found[1])
	}
	return "v0.0.0"
}

// kubernetes returns the module from which the programs of a version of Kubernetes are built.
func kubernetes(version string) *Module {
	m := &Module{
		Name:     version,
		Files:    map[string][]byte{"go.mod": pinnedMod, "go.sum": pinnedSum},
		Flags:    versionFlags(version),
		Programs: all,
	}
	if version != pinnedVersion() {
		m.Files["go.mod"] = []byte("module kubernetes\n")
		m.resolve = func(ctx context.Context, folder string) error { return resolve(ctx, folder, version) }
	}
	return m
}

// versionFlags returns the flags of `go build` that write the version of Kubernetes into the programs.
func versionFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return []string{"-ldflags", strings.Join([]string{"-s", "-w",
		"-X", "k8s.io/component-base/version.gitVersion=" + version,
		"-X", "k8s.io/component-base/version.gitMajor=" + major,
		"-X", "k8s.io/component-base/version.gitMinor=" + minor,
	}, " ")}
}

// manifest is a go.mod file, as `go mod edit -json` prints it.
type manifest struct {
	Require []moduleVersion
	Replace []struct{ Old, New moduleVersion }
}

type moduleVersion struct{ Path, Version string }

// resolve writes the go.mod file for a version of Kubernetes that is not the pinned one. Go adds further requirements while it builds.
func resolve(ctx context.Context, folder, version string) error {
	output, err := goCommand(ctx, folder, "mod", "download", "-json", kubernetesModule+"@"+version).Output()
	var download struct{ GoMod, Error string }
	err = cmp.Or(err, json.Unmarshal(output, &download)) // a command that fails may write the JSON object too
	if err != nil {
		return fmt.Errorf("download Kubernetes %s: %w", version, explain(err, failure(err, download.Error)))
	}
	output, err = goCommand(ctx, folder, "mod", "edit", "-json", download.GoMod).Output()
	if err != nil {
		return fmt.Errorf("read the go.mod file of Kubernetes %s: %w", version, explain(err, failure(err, "")))
	}
	var kubernetes manifest
	if err := json.Unmarshal(output, &kubernetes); err != nil {
		return fmt.Errorf("read the go.mod file of Kubernetes %s: %w", version, err)
	}
	return os.WriteFile(filepath.Join(folder, "go.mod"), manifestFor(version, kubernetes), 0o644)
}

// manifestFor returns a go.mod file that requires a version of Kubernetes, and the version of etcd whose client that version uses. In its
// repository, Kubernetes replaces some modules by folders. These modules are published with the version v0 of the same release.
func manifestFor(version string, kubernetes manifest) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "module kubernetes\n\ngo %s\n\nrequire %s %s\n\n", goVersion(), kubernetesModule, version)
	for _, r := range kubernetes.Require {
		if r.Path == "go.etcd.io/etcd/client/v3" {
			fmt.Fprintf(&b, "require %s %s\n\n", etcdModule, r.Version)
		}
	}
	staging := "v0" + strings.TrimPrefix(version, "v1")
	for _, r := range kubernetes.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			fmt.Fprintf(&b, "replace %[1]s => %[1]s %[2]s\n", r.Old.Path, staging)
		}
	}
	return b.Bytes()
}

// goVersion returns the version of Go that the pinned programs need, such as 1.26.0.
func goVersion() string {
	if found := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(pinnedMod); found != nil {
		return string(found[1])
	}
	return "1.26.0"
}
