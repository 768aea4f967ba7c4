//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/buildfolder"
)

// image is what a Dockerfile builds.
type image struct {
	root       string // folder with its files
	env        []string
	user       string
	entrypoint []string
}

// dockerfile is a Dockerfile whose instructions are run one by one, without docker. Each stage has a folder for its files. The
// base image golang stands for the Go toolchain of this machine, and distroless/static for an empty folder with time zones.
type dockerfile struct {
	context string // folder that COPY copies from
	ignored func(path string) bool
	args    map[string]string // values of the build arguments
	global  map[string]string // the arguments before the first FROM
	stages  []*stage
}

// stage is one FROM of a Dockerfile, and what follows.
type stage struct {
	image
	name     string
	workdir  string
	args     map[string]string
	programs string // folder with the programs that it has built in an earlier run
}

// buildImage builds the image of an example, as `make docker-build` does, with the build arguments that are given.
func buildImage(t *testing.T, example string, args map[string]string) *image {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	file := filepath.Join(root, "examples", example, "Dockerfile")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := instructions(string(text))
	own := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "go build") })
	require.Positive(t, own, "it builds nothing")
	d := &dockerfile{context: root, ignored: readIgnored(t, file+".dockerignore"), args: args, global: map[string]string{}}
	d.share(t, lines[:own])
	d.compile(t, lines[own])
	for _, line := range lines[own+1:] {
		d.carryOut(t, line)
	}
	last := d.stages[len(d.stages)-1]
	require.Contains(t, d.stages[0].env, "CGO_ENABLED=0", "the base image has no C library")
	copyLibraries(t, last.path(last.entrypoint[0]), last.root)
	return &last.image
}

// layers has what instructions have done that images have in common, by these instructions. As in docker's cache they are carried out once,
// and the library is compiled once for all examples.
var layers = struct {
	mu      sync.Mutex
	of      map[string]*dockerfile
	release []func() // release the folders of the stages in which the go command compiles
}{of: map[string]*dockerfile{}}

func releaseLayers() {
	for _, release := range layers.release {
		release()
	}
}

// share carries out instructions that other images may begin with, unless another image has done it.
func (d *dockerfile) share(t *testing.T, lines []string) {
	t.Helper()
	layers.mu.Lock()
	defer layers.mu.Unlock()
	key := strings.Join(lines, "\n")
	if layers.of[key] == nil {
		shared := *d
		for _, line := range lines {
			shared.carryOut(t, line)
		}
		layers.of[key] = &shared
	}
	d.global = maps.Clone(layers.of[key].global)
	for _, s := range layers.of[key].stages {
		d.stages = append(d.stages, &stage{image{s.root, slices.Clone(s.env), s.user, s.entrypoint}, s.name, s.workdir, maps.Clone(s.args), s.programs})
	}
}

// outputFlag is the flag with which the command go gets the path of a program.
var outputFlag = regexp.MustCompile(` -o (/\S+)`)

// compile carries out an instruction that compiles, for one image at a time, so that the next one finds the packages that they share. The
// instruction finds the program of an earlier run. If that is still up to date, the command go only sets its modification time, and links nothing.
// A program whose time the instruction has not set is removed, so that it cannot stand for one that is no longer built.
func (d *dockerfile) compile(t *testing.T, line string) {
	t.Helper()
	layers.mu.Lock()
	defer layers.mu.Unlock()
	named := outputFlag.FindStringSubmatch(line)
	require.NotNil(t, named, "it does not name its program by -o")
	s, outdated := d.stages[len(d.stages)-1], time.Unix(0, 0)
	program, kept := s.path(named[1]), filepath.Join(s.programs, path.Base(named[1]))
	if err := os.Chtimes(kept, outdated, outdated); err == nil {
		require.NoError(t, os.Rename(kept, program))
	}
	d.carryOut(t, line)
	built, err := os.Stat(program)
	switch {
	case err != nil: // COPY will not find it
	case built.ModTime().Equal(outdated):
		require.NoError(t, os.Remove(program))
	default:
		require.NoError(t, os.Link(program, kept))
	}
}

// carryOut carries out one instruction.
func (d *dockerfile) carryOut(t *testing.T, line string) {
	t.Helper()
	instruction, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case instruction == "ARG" && len(d.stages) == 0:
		d.argument(d.global, rest, nil)
	case instruction == "FROM":
		d.from(t, os.Expand(rest, func(name string) string { return d.global[name] }))
	default:
		require.NotEmpty(t, d.stages, "%s comes before FROM", instruction)
		d.run(t, instruction, rest)
	}
}

// instructions returns the instructions of a Dockerfile, without comments, each in one line.
func instructions(text string) (all []string) {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	joined := strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")
	return slices.Collect(strings.SplitSeq(joined, "\n"))
}

// argument defines a build argument: by the value that is given to the build, or else by its default.
func (d *dockerfile) argument(of map[string]string, definition string, global map[string]string) {
	name, value, _ := strings.Cut(definition, "=")
	if inherited, ok := global[name]; ok && value == "" {
		value = inherited
	}
	if given, ok := d.args[name]; ok {
		value = given
	}
	of[name] = value
}

// from begins a stage. If the go command compiles in the stage, the caller holds the lock of the layers.
func (d *dockerfile) from(t *testing.T, definition string) {
	t.Helper()
	base, name, _ := strings.Cut(definition, " AS ")
	s := &stage{name: name, workdir: "/", args: map[string]string{}}
	switch {
	case strings.Contains(base, "golang:"): // the RUN instructions use the toolchain of this machine
		folder, release, err := buildfolder.Open("image")
		require.NoError(t, err)
		s.root, s.programs = filepath.Join(folder, "files"), filepath.Join(folder, "programs")
		layers.release = append(layers.release, func() {
			_ = os.RemoveAll(s.root)
			release()
		})
		require.NoError(t, os.RemoveAll(s.root))
		require.NoError(t, os.MkdirAll(s.root, 0o755))
		require.NoError(t, os.MkdirAll(s.programs, 0o755))
	case strings.Contains(base, "distroless/static"):
		root, err := os.MkdirTemp(scratch, "stage")
		require.NoError(t, err)
		s.root = root
		require.NoError(t, os.Mkdir(filepath.Join(s.root, "tmp"), 0o777))
		copyTimeZones(t, s.root)
	default:
		t.Fatalf("the base image %s is not known here", base)
	}
	d.stages = append(d.stages, s)
}

// copyTimeZones copies the time zones of the Go toolchain to where the image distroless/static has them.
func copyTimeZones(t *testing.T, root string) {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	zones, err := zip.OpenReader(filepath.Join(string(bytes.TrimSpace(goroot)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer zones.Close()
	require.NoError(t, os.CopyFS(filepath.Join(root, "usr", "share", "zoneinfo"), zones))
}

// run runs one instruction in the last stage.
func (d *dockerfile) run(t *testing.T, instruction, rest string) {
	t.Helper()
	s := d.stages[len(d.stages)-1]
	expanded := os.Expand(rest, s.variable)
	switch instruction {
	case "ARG":
		d.argument(s.args, rest, d.global)
	case "ENV":
		s.env = append(s.env, words(expanded)...)
	case "WORKDIR":
		s.workdir = path.Join(s.workdir, expanded)
		require.NoError(t, os.MkdirAll(s.path(""), 0o755))
	case "COPY":
		d.copy(t, s, words(expanded))
	case "RUN":
		s.execute(t, rest)
	case "USER":
		s.user = expanded
	case "ENTRYPOINT":
		require.NoError(t, json.Unmarshal([]byte(rest), &s.entrypoint), "ENTRYPOINT is no list: a shell would be process 1")
	default:
		t.Fatalf("the instruction %s is not known here", instruction)
	}
}

func (s *stage) variable(name string) string {
	for _, variable := range slices.Backward(s.env) {
		if key, value, _ := strings.Cut(variable, "="); key == name {
			return value
		}
	}
	return s.args[name]
}

// path returns where a path of the image is on this machine.
func (s *stage) path(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(s.workdir, name)
	}
	return filepath.Join(s.root, filepath.FromSlash(name))
}

var (
	quoted   = regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`)
	mount    = regexp.MustCompile(`^(--mount=\S+\s+)+`)
	absolute = regexp.MustCompile(`(^|[\s=])/`)
)

// words splits a line at its spaces, and removes quotes.
func words(line string) []string {
	all := quoted.FindAllString(line, -1)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], `"`, "")
	}
	return all
}

// isOfCompiler reports whether a variable changes how all packages are compiled. A container has a cache of its own. Here a program
// shares the packages that other programs of the tests have compiled.
func isOfCompiler(variable string) bool { return strings.HasPrefix(variable, "CGO_ENABLED=") }

// execute runs a command of RUN. Absolute paths in it become paths below the folder of the stage.
func (s *stage) execute(t *testing.T, command string) {
	t.Helper()
	command = absolute.ReplaceAllString(mount.ReplaceAllString(command, ""), "${1}"+s.root+"/")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = s.path("")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GOWORK=") || strings.HasPrefix(variable, "GOFLAGS=") // `make test` sets the first
	})
	for name, value := range s.args {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, slices.DeleteFunc(slices.Clone(s.env), isOfCompiler)...)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "RUN %s\n%s", command, output)
}

// copy copies files of the context, or of another stage, to a stage.
func (d *dockerfile) copy(t *testing.T, s *stage, arguments []string) {
	t.Helper()
	root, ignored := d.context, d.ignored
	if name, ok := strings.CutPrefix(arguments[0], "--from="); ok {
		i := slices.IndexFunc(d.stages, func(s *stage) bool { return s.name == name })
		require.GreaterOrEqual(t, i, 0, "there is no stage %s", name)
		root, ignored, arguments = d.stages[i].root, func(string) bool { return false }, arguments[1:]
	}
	sources, target := arguments[:len(arguments)-1], arguments[len(arguments)-1]
	for _, source := range sources {
		matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(source)))
		require.NoError(t, err)
		copied := 0
		for _, match := range matches {
			copied += copyFiles(t, root, match, s.path(target), strings.HasSuffix(target, "/") || len(sources) > 1, ignored)
		}
		require.NotZero(t, copied, "COPY %s: there is no such file, or the .dockerignore file leaves it out", source)
	}
}

// copyFiles copies a file, or the content of a folder, and returns the number of files. Files below root may be ignored.
func copyFiles(t *testing.T, root, from, to string, intoFolder bool, ignored func(string) bool) (copied int) {
	t.Helper()
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || ignored(filepath.ToSlash(below)) {
			return nil
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if name == "." && intoFolder {
			name = entry.Name()
		}
		copied++
		return copyFile(file, filepath.Join(to, name))
	})
	require.NoError(t, err)
	return copied
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// readIgnored reads a .dockerignore file, and returns a function that reports whether a file is left out of the context. The last
// pattern counts that matches the file or a folder that contains it.
func readIgnored(t *testing.T, file string) func(path string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	type rule struct {
		pattern *regexp.Regexp
		ignore  bool
	}
	var rules []rule
	for _, line := range instructions(string(text)) {
		pattern, kept := strings.CutPrefix(line, "!")
		expression := regexp.QuoteMeta(strings.Trim(pattern, "/"))
		for from, to := range map[string]string{`\*\*/`: `(.*/)?`, `\?`: `[^/]`} {
			expression = strings.ReplaceAll(expression, from, to)
		}
		expression = strings.ReplaceAll(expression, `\*`, `[^/]*`)
		rules = append(rules, rule{regexp.MustCompile(`^` + expression + `(/.*)?$`), !kept})
	}
	return func(path string) (ignored bool) {
		for _, r := range rules {
			if r.pattern.MatchString(path) {
				ignored = r.ignore
			}
		}
		return ignored
	}
}
