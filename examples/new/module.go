package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/version"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/opblocks/opblocks/examples"
)

//go:embed template
var templates embed.FS

// templateFiles are the files that a copy gets from templates, by their paths in the new module.
var templateFiles = map[string]string{
	"Makefile": "Makefile.tmpl", "Dockerfile": "Dockerfile.tmpl", "README.md": "README.md.tmpl",
	".dockerignore": "dockerignore.tmpl", ".gitignore": "gitignore.tmpl",
}

const (
	controllerTools = "sigs.k8s.io/controller-tools"
	controllerGen   = controllerTools + "/cmd/controller-gen"
	goDownload      = "https://go.dev/dl/"
)

var (
	semverForm       = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	librarySelected  = regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(libraryPath) + ` (\S+)$`)
	goSelected       = regexp.MustCompile(`(?m)^go (\S+)$`)
	generatedBy      = regexp.MustCompile(`controller-gen\.kubebuilder\.io/version: (\S+)`)
	replaceDirective = regexp.MustCompile(`(?m)^replace .*\n+`)
)

// checkLibrary returns an error that says what to do if the library cannot be had as the flags say.
func (c *command) checkLibrary() error {
	switch {
	case c.library != "" && !semverForm.MatchString(c.library):
		return fmt.Errorf("-library %s: name a version of the library, such as v0.1.0", c.library)
	case c.library == "" && c.replace == "" && !c.released:
		return errors.New("this command was built from a checkout: pass -replace and its folder to use the library from there, " +
			"or -library and a released version")
	case c.replace != "":
		manifest, err := os.ReadFile(filepath.Join(c.replace, "go.mod"))
		if err != nil || !bytes.Contains(manifest, []byte("module "+libraryPath+"\n")) {
			return fmt.Errorf("-replace %s: the folder is not the root of a checkout of %s", c.replace, libraryPath)
		}
	}
	return nil
}

// checkFolder returns an error that says what to do if the new module cannot be written to its folder.
func (c *command) checkFolder() error {
	parent := filepath.Dir(filepath.Clean(c.dir))
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return fmt.Errorf("-dir %s: there is no folder %s; create it first", c.dir, parent)
	}
	info, err := os.Lstat(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("-dir %s: a file is in the way; choose another folder", c.dir)
	}
	entries, err := os.ReadDir(c.dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("-dir %s: the folder is not empty; choose another one", c.dir)
	}
	return err
}

// run writes the new module. It writes to a folder beside the wanted one and renames that at the end, so that nothing is left when
// something fails.
func (c *command) run(ctx context.Context) (*names, error) {
	to, err := c.check()
	if err != nil {
		return nil, err
	}
	if err := c.checkFolder(); err != nil {
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

	folder := filepath.Clean(c.dir)
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot write beside %s: %w", folder, err)
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
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return to, os.Rename(unfinished, folder)
}

// files returns the files of the new module by their paths.
func (c *command) files(r *renaming) (map[string][]byte, error) {
	selected, err := selectFiles(examples.Source, c.example)
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

// addModule adds go.mod and go.sum. The copy requires what the example is tested with, until go mod tidy removes what the other
// examples need.
func (c *command) addModule(files map[string][]byte, tools string) error {
	manifest, err := examples.Source.ReadFile("go.mod")
	if err != nil {
		return err
	}
	sums, err := examples.Source.ReadFile("go.sum")
	if err != nil {
		return err
	}
	text := replaceDirective.ReplaceAllString(string(manifest), "")
	_, rest, found := strings.Cut(text, "\nmodule "+modulePath+"\n")
	required := librarySelected.FindStringSubmatch(rest)
	before, after, _ := strings.Cut(rest, "\nrequire (")
	if !found || required == nil || tools == "" {
		return errors.New("the go.mod of the examples is not as expected")
	}
	library := required[1]
	if c.library != "" {
		library = c.library
	}
	after = librarySelected.ReplaceAllString(after, "\t"+libraryPath+" "+library)
	after = strings.TrimSuffix(strings.TrimSpace(after), ")") + "\t" + controllerTools + " " + tools + " // indirect\n)\n"
	text = "module " + c.module + "\n" + before + "\ntool " + controllerGen + "\n\nrequire (\n" + after
	if c.replace != "" {
		folder, err := c.relative()
		if err != nil {
			return err
		}
		text += "\nreplace " + libraryPath + " => " + folder + "\n"
	}
	files["go.mod"], files["go.sum"] = []byte(text), sums
	return nil
}

// relative returns the folder of the library's checkout as the new module's go.mod has it.
func (c *command) relative() (string, error) {
	from, err := filepath.Abs(c.dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(c.replace)
	if err != nil {
		return "", err
	}
	folder, err := filepath.Rel(from, to)
	if err != nil {
		return to, nil // on another drive
	}
	if !strings.HasPrefix(folder, "..") {
		folder = "./" + folder
	}
	if strings.ContainsAny(folder, " \t\"'`") {
		return fmt.Sprintf("%q", filepath.ToSlash(folder)), nil
	}
	return filepath.ToSlash(folder), nil
}

// addTemplates adds what a copy has instead of the files of the repository.
func (c *command) addTemplates(files map[string][]byte, r *renaming) error {
	parsed, err := template.ParseFS(templates, "template/*.tmpl")
	if err != nil {
		return err
	}
	values := map[string]any{
		"Name": lastElement(c.module), "Module": c.module, "Example": c.example, "Kind": r.to.kind, "Lower": r.to.lower, "Plural": r.to.plural,
		"Group": r.to.group, "Version": r.to.version, "Go": goMinor(files["go.mod"]), "Replaced": c.replace != "",
		"MariaDB": slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, "internal/mariadb/") }),
		"Samples": slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, "config/samples/") }),
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

// goMinor returns the Go release that a go.mod requires, such as 1.26.
func goMinor(manifest []byte) string {
	return strings.TrimPrefix(version.Lang("go"+string(goSelected.FindSubmatch(manifest)[1])), "go")
}

// tidy completes go.mod and go.sum of the new module.
func (c *command) tidy(ctx context.Context, folder string) error {
	manifest, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	wanted := goMinor(manifest)
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the command go is missing; install Go %s or newer: %s", wanted, goDownload)
	}
	if output, err := goCommand(ctx, folder, io.Discard, "list", "-m"); err != nil {
		if strings.Contains(output, "requires go") {
			return fmt.Errorf("install Go %s or newer, see %s: %s", wanted, goDownload, lastLine(output))
		}
		return fmt.Errorf("go does not accept the new module: %s", lastLine(output))
	}
	fmt.Fprintln(c.progress, "opblocks: running go mod tidy, which downloads modules that are missing")
	if output, err := goCommand(ctx, folder, c.progress, "mod", "tidy"); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was written")
		}
		return fmt.Errorf("go mod tidy failed: %s; is the network or GOPROXY missing? With -skip-tidy you run it later", lastLine(output))
	}
	return nil
}

// goCommand runs the command go in the folder of the new module, apart from any workspace around it, and returns its output.
func goCommand(ctx context.Context, folder string, progress io.Writer, arguments ...string) (output string, err error) {
	var all bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+folder)
	both := io.MultiWriter(&all, progress)
	cmd.Stdout, cmd.Stderr = both, both
	err = cmd.Run()
	return all.String(), err
}

// lastLine returns the last line of a command's output.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
