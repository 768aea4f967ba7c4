package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/version"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/examples"
)

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	controllerTools   = "sigs.k8s.io/controller-tools"
	controllerGen     = controllerTools + "/cmd/controller-gen"
)

var (
	semverForm       = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	librarySelected  = regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(libraryPath) + ` (\S+)$`)
	goSelected       = regexp.MustCompile(`(?m)^go (\S+)$`)
	generatedBy      = regexp.MustCompile(`controller-gen\.kubebuilder\.io/version: (\S+)`)
	replaceDirective = regexp.MustCompile(`(?m)^replace .*\n+`)
	requirement      = regexp.MustCompile(`(?m)^\t(\S+) \S+( // indirect)?\n`)
	runtimeSelected  = regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(controllerRuntime) + ` ((v[0-9]+\.[0-9]+)\.\S+)$`)
)

// runtimeVersion is a version of controller-runtime, and the version of controller-tools for the same release of Kubernetes.
type runtimeVersion struct{ controllerRuntime, controllerTools string }

// older are the versions that a copy can require instead of what the examples require, by the minor version of controller-runtime.
var older = map[string]runtimeVersion{"v0.24": {"v0.24.1", "v0.21.0"}}

// beyondLibrary are the modules that examples require and the library does not.
var beyondLibrary = []string{"github.com/go-sql-driver/mysql", "go.uber.org/goleak"}

// requiredModules returns the paths of the modules that the examples require.
func requiredModules() (paths []string) {
	manifest, err := examples.Source.ReadFile("go.mod")
	if err != nil {
		panic(err) // it is in memory
	}
	for _, line := range requirement.FindAllSubmatch(manifest, -1) {
		paths = append(paths, string(line[1]))
	}
	return paths
}

// newest returns the minor version of the controller-runtime that the examples require.
func newest() string {
	manifest, err := examples.Source.ReadFile("go.mod")
	if err != nil {
		panic(err) // it is in memory
	}
	return string(runtimeSelected.FindSubmatch(manifest)[2])
}

// choices returns the values of the flag -controller-runtime.
func choices() []string { return append(slices.Sorted(maps.Keys(older)), newest()) }

// requirements returns the requirements of a go.mod for an older version: those that the library does not have. go mod tidy adds the others
// in the versions that the library requires.
func (v runtimeVersion) requirements(of string) string {
	return requirement.ReplaceAllStringFunc(of, func(line string) string {
		switch module := requirement.FindStringSubmatch(line)[1]; {
		case module == controllerRuntime:
			return "\t" + module + " " + v.controllerRuntime + "\n"
		case module == libraryPath || slices.Contains(beyondLibrary, module):
			return line
		}
		return ""
	})
}

// checkControllerRuntime returns an error that names the choices if the flag has none of them.
func (c *command) checkControllerRuntime() error {
	if all := choices(); !slices.Contains(all, c.controllerRuntime) {
		return fmt.Errorf("-controller-runtime %s: choose from %s", c.controllerRuntime, strings.Join(all, ", "))
	}
	return nil
}

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
	after = strings.TrimSuffix(strings.TrimSpace(after), ")")
	if v, ok := older[c.controllerRuntime]; ok {
		after, tools = v.requirements(after), v.controllerTools
	}
	after += "\t" + controllerTools + " " + tools + " // indirect\n)\n"
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

// relative returns the folder of the library's checkout as the new module's go.mod has it, relative to the module's folder.
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

// goMinor returns the Go release that a go.mod requires, such as 1.26.
func goMinor(manifest []byte) string {
	return strings.TrimPrefix(version.Lang("go"+string(goSelected.FindSubmatch(manifest)[1])), "go")
}
