// New copies an example operator into a module of one's own, with the names of one's own kind:
//
//	go run github.com/opblocks/opblocks/examples/new@latest -from memcached -module example.com/shop -kind Shop
//
// The copy has its own go.mod, Makefile, Dockerfile, manifests, tests and README.md, and depends on the library only. In a checkout
// of the repository, `make new` does the same.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/opblocks/opblocks/examples"
)

// command is what the flags say.
type command struct {
	example, module, kind, group, version, dir, library, replace string
	controllerRuntime                                            string // the minor version to require
	groupIsDefault                                               bool   // no group was named
	skipTidy                                                     bool
	isMake                                                       bool // messages name variables of make instead of flags

	released bool // this program is a released version
	progress io.Writer
}

// flagError is an error in what the user typed.
type flagError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command and returns its exit code: 2 if a flag is wrong, and 1 if something else is.
func execute(ctx context.Context, arguments []string, out, progress io.Writer) int {
	c, err := parseFlags(arguments, progress)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var n *names
	if err == nil {
		n, err = c.run(ctx)
	}
	if err != nil {
		fmt.Fprintf(progress, "opblocks: %s\n", c.advice(err.Error()))
		if _, wrong := errors.AsType[flagError](err); wrong {
			return 2
		}
		return 1
	}
	fmt.Fprintf(out, `%s has the operator of kind %s, of the API %s/%s. Next:

  cd %s
  make test          # unit tests, an exploration of faults, and a lifecycle on a real control plane
  make install run   # in the cluster of kubectl's current context
`, c.dir, n.kind, n.group, n.version, c.dir)
	if c.groupIsDefault {
		fmt.Fprint(out, c.advice(fmt.Sprintf("\nThe API group was made from the path of the module. To choose another one, remove %s and run this again with -group NAME.\n", c.dir)))
	}
	if file := workspaceAround(c.dir); file != "" {
		fmt.Fprintf(out, "\nThe command go builds only what %s lists. Add the new module: go work use %s\n", file, c.dir)
	}
	return 0
}

// ownFlags are flags for which make new has variables, with the space before the value.
var ownFlags = regexp.MustCompile(`(^|\s)-(from|module|kind|dir|group|version|library|controller-runtime)\b ?`)

// advice returns a message as the user has to read it: make new has KIND= where the command has -kind.
func (c *command) advice(message string) string {
	if !c.isMake {
		return message
	}
	return ownFlags.ReplaceAllStringFunc(message, func(found string) string {
		return strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(strings.Replace(found, "-", "", 1), " "), "-", "_")) + "="
	})
}

func parseFlags(arguments []string, progress io.Writer) (*command, error) {
	c := &command{progress: progress, released: isReleased()}
	flags := flag.NewFlagSet("new", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&c.example, "from", "", "`example` to copy: "+strings.Join(exampleNames(), ", "))
	flags.StringVar(&c.module, "module", "", "`path` of the new module, such as example.com/shop")
	flags.StringVar(&c.kind, "kind", "", "`kind` of its objects, such as Shop")
	flags.StringVar(&c.group, "group", "", "API `group` (default: the last element of the module's path before its domain, such as shop.example.com)")
	flags.StringVar(&c.version, "version", "v1alpha1", "API `version`")
	flags.StringVar(&c.dir, "dir", "", "`folder` to write, which is new or empty (default: the last element of the module's path)")
	flags.StringVar(&c.library, "library", "", "`version` of "+libraryPath+" to require (default: the one of this command)")
	flags.StringVar(&c.controllerRuntime, "controller-runtime", newest(), "`version` of controller-runtime to require: "+strings.Join(choices(), " or "))
	flags.StringVar(&c.replace, "replace", "", "`folder` of a checkout of "+libraryPath+" to use instead of a released version")
	flags.BoolVar(&c.isMake, "make", false, "name variables of make in messages, and not flags")
	flags.BoolVar(&c.skipTidy, "skip-tidy", false, "do not run go mod tidy, which needs the network")
	flags.Usage = func() {
		fmt.Fprint(progress, "New copies an example operator into a module of your own, with the names of your own kind:\n\n"+
			"  go run "+modulePath+"/new@latest -from memcached -module example.com/shop -kind Shop\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return c, flagError{errors.New("see -help")} // the error is printed already
	}
	if flags.NArg() > 0 {
		return c, flagError{fmt.Errorf("there is an argument too many, %q; see -help", flags.Arg(0))}
	}
	return c, nil
}

// exampleNames returns the names of the examples.
func exampleNames() (all []string) {
	entries, err := examples.Source.ReadDir(".")
	if err != nil {
		panic(err) // it is in memory
	}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "internal" {
			all = append(all, entry.Name())
		}
	}
	return all
}

// isReleased reports whether this program was built from a released version of the examples, which requires a released version of
// the library.
func isReleased() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && info.Main.Path == modulePath && strings.HasPrefix(info.Main.Version, "v") && !strings.Contains(info.Main.Version, "+dirty")
}

// check completes the command's flags by their defaults. It returns the names of the copy, or an error that says what to do.
func (c *command) check() (*names, error) {
	switch {
	case c.example == "":
		return nil, flagError{fmt.Errorf("name an example to copy by -from: %s", strings.Join(exampleNames(), ", "))}
	case !slices.Contains(exampleNames(), c.example):
		return nil, flagError{fmt.Errorf("-from %s: there is no such example; choose from %s", c.example, strings.Join(exampleNames(), ", "))}
	}
	if err := checkModule(c.module); err != nil {
		return nil, flagError{err}
	}
	if c.group == "" {
		c.group, c.groupIsDefault = defaultGroup(c.module), true
	}
	for _, err := range []error{checkKind(c.kind), checkGroup(c.group), checkVersion(c.version), c.checkLibrary(), c.checkControllerRuntime()} {
		if err != nil {
			return nil, flagError{err}
		}
	}
	if c.dir == "" {
		c.dir = lastElement(c.module)
	}
	lower := strings.ToLower(c.kind)
	n := &names{
		packages: c.module, shared: c.module + "/internal",
		kind: c.kind, lower: lower, plural: pluralOf(lower), group: c.group, version: c.version,
	}
	n.alias = strings.ReplaceAll(n.groupLabel(), "-", "") + n.version
	if n.alias[0] >= '0' && n.alias[0] <= '9' {
		n.alias = n.lower + n.version
	}
	return n, nil
}
