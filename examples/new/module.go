package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/opblocks/opblocks/examples"
)

//go:embed template
var templates embed.FS

// templateFiles are the files that a copy gets from templates, by their paths in the new module.
var templateFiles = map[string]string{
	"Makefile": "Makefile.tmpl", "Dockerfile": "Dockerfile.tmpl", "README.md": "README.md.tmpl", "AGENTS.md": "AGENTS.md.tmpl",
	"hack/undeploy": "undeploy", ".dockerignore": "dockerignore.tmpl", ".gitignore": "gitignore.tmpl",
}

// checkFolder returns an error that says what to do if the new module cannot be written to its folder. Otherwise it returns the folder
// in which the module is made first: the folder itself if it exists, and else the one around it.
func (c *command) checkFolder() (workshop string, err error) {
	folder, err := filepath.Abs(c.dir)
	if err != nil {
		return "", err
	}
	parent := filepath.Dir(folder)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return "", fmt.Errorf("-dir %s: there is no folder %s; create it first", c.dir, parent)
	}
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parent, nil
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("-dir %s: a file is in the way; choose another folder", c.dir)
	}
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("-dir %s: the folder is not empty; choose another one", c.dir)
	}
	if c.replace != "" {
		return parent, err // where the path of the checkout is the same one
	}
	return folder, err
}

// run writes the new module. It writes to a temporary folder and renames that at the end, so that nothing is left when something fails.
func (c *command) run(ctx context.Context) (*names, error) {
	to, err := c.check()
	if err != nil {
		return nil, err
	}
	workshop, err := c.checkFolder()
	if err != nil {
		return nil, flagError{err}
	}
	from, err := namesOf(examples.Source, c.example)
	if err != nil {
		return nil, err
	}
	files, err := c.files(&renaming{from: from, to: to})
	if err != nil {
		return nil, err
	}

	unfinished, err := os.MkdirTemp(workshop, ".new-operator-")
	if err != nil {
		return nil, fmt.Errorf("cannot write to %s: %w", workshop, err)
	}
	defer os.RemoveAll(unfinished)
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return nil, err
	}
	for name, text := range files {
		file := filepath.Join(unfinished, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
	}
	if !c.skipTidy {
		if err := c.tidy(ctx, unfinished); err != nil {
			return nil, err
		}
	}
	return to, c.finish(unfinished)
}

// finish moves the finished module to its folder.
func (c *command) finish(unfinished string) error {
	if _, err := os.Stat(c.dir); err != nil {
		return os.Rename(unfinished, c.dir)
	}
	entries, err := os.ReadDir(unfinished)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if err := os.Rename(filepath.Join(unfinished, entry.Name()), filepath.Join(c.dir, entry.Name())); err != nil {
			for _, moved := range entries[:i] {
				os.RemoveAll(filepath.Join(c.dir, moved.Name()))
			}
			return err
		}
	}
	return nil
}

// workspaceAround returns the go.work file that the command go finds from the folder of the new module, or "".
func workspaceAround(folder string) string {
	folder, err := filepath.Abs(folder)
	for err == nil {
		file := filepath.Join(folder, "go.work")
		if _, missing := os.Stat(file); missing == nil {
			return file
		}
		if folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	return ""
}

// files returns the files of the new module by their paths.
func (c *command) files(r *renaming) (map[string][]byte, error) {
	selected, err := selectFiles(examples.Source, r.from)
	if err != nil {
		return nil, err
	}
	r.findAlias(selected.goFiles)
	declared, err := r.declare(slices.DeleteFunc(slices.Clone(selected.goFiles), func(f *goFile) bool {
		return strings.HasPrefix(f.name, "internal/")
	}))
	if err != nil {
		return nil, flagError{err}
	}

	written := map[string][]byte{}
	add := func(name string, text []byte, err error) error {
		target := r.target(name)
		if _, taken := written[target]; taken && err == nil {
			err = flagError{fmt.Errorf("-kind %s: choose another one, since example %s has a file %s already", c.kind, c.example, target)}
		}
		written[target] = text
		return err
	}
	for _, f := range selected.goFiles {
		text, err := r.source(f, declared)
		if err := add(f.name, text, err); err != nil {
			return nil, err
		}
	}
	var tools string // version of controller-gen
	for _, name := range slices.Sorted(maps.Keys(selected.others)) {
		if version := generatedBy.FindSubmatch(selected.others[name]); version != nil {
			tools = string(version[1])
		}
		text, err := r.manifest(name, selected.others[name])
		if v, ok := older[c.controllerRuntime]; ok {
			text = generatedBy.ReplaceAll(text, []byte("controller-gen.kubebuilder.io/version: "+v.controllerTools))
		}
		if err := add(name, text, err); err != nil {
			return nil, err
		}
	}
	if err := r.leftovers(written); err != nil {
		return nil, err
	}
	if err := c.addModule(written, tools); err != nil {
		return nil, err
	}
	return written, c.addTemplates(written, r)
}

// addTemplates adds what a copy has instead of the files of the repository.
func (c *command) addTemplates(files map[string][]byte, r *renaming) error {
	parsed, err := template.ParseFS(templates, "template/*")
	if err != nil {
		return err
	}
	has := func(folder string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, folder) })
	}
	values := map[string]any{
		"Name": lastElement(c.module), "Module": c.module, "Example": c.example, "Kind": r.to.kind, "Lower": r.to.lower, "Plural": r.to.plural,
		"Group": r.to.group, "Version": r.to.version, "Go": goMinor(files["go.mod"]), "Replaced": c.replace != "",
		"MariaDB": has("internal/mariadb/"), "Samples": has("config/samples/"), "Webhooks": has("config/webhook/"),
	}
	for name, from := range templateFiles {
		var text bytes.Buffer
		if err := parsed.ExecuteTemplate(&text, from, values); err != nil {
			return err
		}
		files[name] = text.Bytes()
	}
	return nil
}
