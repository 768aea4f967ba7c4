package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
)

// CacheVariable is the environment variable that names a folder to use instead of the folder opblocks in the user's cache.
const CacheVariable = "OPBLOCKS_CACHE"

// Module is a Go module from which programs are built. The programs have a folder of their own in the cache.
type Module struct {
	Name     string            // the beginning of the folder's name, such as v1.36.3
	Files    map[string][]byte // go.mod, go.sum and sources, by path
	Flags    []string          // the flags of `go build`
	Programs []Program

	// resolve completes the module's files in a folder. It is nil if the files are complete.
	resolve func(ctx context.Context, folder string) error
}

// Program is a Go main package to build, and the name of the program.
type Program struct{ Name, Package string }

// executable returns the name of the file that `go build` writes: the last element of the package's path, without a version such as v3.
func (p Program) executable() string {
	name := path.Base(p.Package)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(p.Package))
	}
	return name
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// Ensure returns the paths of the named programs, by name. It builds those that are missing.
func (m *Module) Ensure(ctx context.Context, names ...string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	folder, err := m.folder()
	if err != nil {
		return nil, err
	}
	if missing := m.missing(folder, names); len(missing) > 0 {
		if err := m.build(ctx, folder, names); err != nil {
			return nil, err
		}
	}
	paths := map[string]string{}
	for _, name := range names {
		paths[name] = filepath.Join(folder, name)
	}
	return paths, nil
}

// missing returns the named programs that are not in the folder. A program in the folder is complete and up to date: a hash of everything
// from which it is built is in the folder's name, and a program is moved there only after the build.
func (m *Module) missing(folder string, names []string) []Program {
	var missing []Program
	for _, p := range m.Programs {
		if _, err := os.Stat(filepath.Join(folder, p.Name)); err != nil && slices.Contains(names, p.Name) {
			missing = append(missing, p)
		}
	}
	return missing
}

// folder returns the folder of the programs.
func (m *Module) folder() (string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, fmt.Sprintf("%s-%s-%s-%s", m.Name, runtime.GOOS, runtime.GOARCH, m.key())), nil
}

// key returns a hash of everything from which the programs are built, except the operating system and the version of Go. So a new
// version of Go does not build them again.
func (m *Module) key() string {
	key := sha256.New()
	fmt.Fprintln(key, m.Flags, m.Programs)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		fmt.Fprintf(key, "%s %x\n", name, sha256.Sum256(m.Files[name]))
	}
	return hex.EncodeToString(key.Sum(nil))[:12]
}

// cacheFolder returns the root of the build cache, with one subfolder per module.
func cacheFolder() (string, error) {
	folder := os.Getenv(CacheVariable)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("there is no folder for the control plane's programs: set %s to one: %w", CacheVariable, err)
		}
		folder = filepath.Join(cache, "opblocks")
	}
	folder, err := filepath.Abs(folder)
	return filepath.Join(folder, "controlplane"), err
}

// write writes the files into a folder.
func (m *Module) write(folder string) error {
	for name, content := range m.Files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
