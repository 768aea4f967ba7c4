package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// load returns the exported API of all packages of a module that users can import, sorted. root is the folder of the module.
//
// The go command compiles the packages, and load reads the types from the compiled files in the build cache. So nothing is parsed or
// compiled a second time.
func load(ctx context.Context, root string) ([]string, error) {
	var failed bytes.Buffer
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-export",
		"-f", "{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{if not .DepOnly}}{{.Module.Path}}{{end}}", "./...")
	list.Dir, list.Stderr = root, &failed
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w: %s", err, bytes.TrimSpace(failed.Bytes()))
	}
	exports := map[string]string{}
	var module string
	var public []string
	for line := range strings.Lines(string(output)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("list the packages: unexpected line %q", line)
		}
		path, name, ours := fields[0], fields[2], fields[3]
		exports[path] = fields[1] // the export data; "" for a package that has only tests
		if ours != "" && exports[path] != "" && name != "main" && !slices.Contains(strings.Split(path, "/"), "internal") {
			module, public = ours, append(public, path)
		}
	}
	if len(public) == 0 {
		return nil, errors.New("list the packages: there is none that users can import")
	}
	packages := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("the go command has not compiled package %s", path)
		}
		return os.Open(exports[path])
	})
	all := make([]*types.Package, len(public))
	for i, path := range public {
		if all[i], err = packages.Import(path); err != nil {
			return nil, fmt.Errorf("read package %s: %w", path, err)
		}
	}
	var api []string
	names := publicNames(all, module)
	for _, pkg := range all {
		api = append(api, describe(pkg, module, names)...)
	}
	slices.Sort(api)
	return api, nil
}
