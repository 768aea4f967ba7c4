package supervisor

import (
	"context"
	"embed"
	"io/fs"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
)

const name = "supervise"

// sources are the files of the supervisor's program. The program is built from them and not as a package of the user's module: that module
// may be vendored, and a program may also run outside of any module.
//
//go:embed internal/server/*.go internal/supervise/*.go
var sources embed.FS

// Build builds the supervisor's program into the user's cache, unless it is there. This takes some seconds. It needs the go
// command, and no network. [New] does the same.
func Build(ctx context.Context) error {
	_, err := program(ctx)
	return err
}

// program returns the path of the supervisor's program.
func program(ctx context.Context) (string, error) {
	module := &programs.Module{
		Name: "supervisor",
		Files: map[string][]byte{
			"go.mod": []byte("module github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor\n\ngo 1.26.0\n"),
		},
		Flags:    []string{"-ldflags", "-s -w"},
		Programs: []programs.Program{{Name: name, Package: "./internal/" + name}},
	}
	err := fs.WalkDir(sources, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		module.Files[file], err = sources.ReadFile(file)
		return err
	})
	if err != nil {
		return "", err
	}
	paths, err := module.Ensure(ctx, name)
	return paths[name], err
}
