package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// suite is a call of `go test` in a folder, relative to the folder of the benchmarks.
type suite struct {
	what      string // is printed before it runs, with about how long it takes
	folder    string
	arguments []string
}

// suites run one after the other, on a machine that does nothing else. Each value is measured five times, most of them in turns.
var suites = []suite{
	{"comparison of Deployments, 1 minute", "..", []string{"-bench=Deployment", "-count=5", "./internal/compare"}},
	{"schedules, 1 minute", "..", []string{"-bench=Due|Parse|MayStart", "-benchtime=200ms", "-count=5", "./schedule"}},
	{"a pass with nothing to do and the creation of Services, 7 minutes", ".", []string{"-bench=SteadyState|CreateService", "-timeout=60m", "."}},
	{"lists and the convergence of up to 10,000 objects, 30 minutes", ".", []string{"-bench=List|Convergence", "-benchtime=1x", "-timeout=90m", "."}},
	{"first passes with slow requests, 6 minutes", ".", []string{"-bench=FirstPass", "-benchtime=1x", "-timeout=60m", "."}},
	{"restarts with 100,000 objects, 12 minutes", ".", []string{"-bench=Scale$/^objects=100000$/^variant=(opblocks|hand-written)$", "-benchtime=1x", "-timeout=60m", "."}},
}

// measure runs the suites and writes their output to a file, after lines that say what is measured. It prints the output, too. It
// stops at the first suite that fails.
func measure(ctx context.Context, file, programs string, suites []suite, stdout, stderr io.Writer) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	versions, err := versionLines(ctx, programs)
	if err != nil {
		return err
	}
	all := io.MultiWriter(stdout, out)
	if _, err := io.WriteString(all, versions); err != nil {
		return err
	}
	for _, s := range suites {
		fmt.Fprintf(stderr, "opblocks: measuring %s; do nothing else on this machine\n", s.what)
		cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-run=^$", "-benchmem"}, s.arguments...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.folder, all, stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return out.Close()
}

// version finds the version in what `kube-apiserver --version` or `etcd --version` prints.
var version = regexp.MustCompile(`(?m)^(?:Kubernetes v|etcd Version: )(\S+)$`)

// versionLines returns lines that name the date and the versions of Go and of the programs in a folder.
func versionLines(ctx context.Context, folder string) (string, error) {
	lines := []string{"date: " + time.Now().UTC().Format(time.DateOnly), "go: " + strings.TrimPrefix(runtime.Version(), "go")}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		output, err := exec.CommandContext(ctx, filepath.Join(folder, name), "--version").Output()
		if err != nil {
			return "", fmt.Errorf("run `make control-plane` first: %s --version: %w", name, err)
		}
		found := version.FindSubmatch(output)
		if found == nil {
			return "", fmt.Errorf("%s --version: there is no version in %q", name, output)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, found[1]))
	}
	return strings.Join(lines, "\n") + "\n", nil
}
