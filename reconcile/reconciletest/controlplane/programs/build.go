package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// build builds the missing programs. Only one process builds at a time. The others wait, and find the programs built.
func (c *checkout) build(ctx context.Context, missing []program) error {
	if err := os.MkdirAll(c.bin(""), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, c.bin(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.removeUnfinished(); err != nil {
		return err
	}
	begin := time.Now()
	for _, folder := range []string{c.root, filepath.Join(c.root, "hack", "k8s")} {
		if err := c.buildIn(ctx, folder, missing); err != nil {
			return err
		}
	}
	say("the control plane's programs are in %s, after %s", c.bin(""), time.Since(begin).Round(time.Second))
	return nil
}

// buildIn builds those of the missing programs whose module is in a folder. One go command builds all of them, so that it links
// one while it compiles another.
func (c *checkout) buildIn(ctx context.Context, folder string, missing []program) error {
	keys := map[program]string{}
	var building []program
	var names, sources []string
	for _, p := range missing {
		if c.folder(p) != folder {
			continue
		}
		if done, err := c.upToDate(p); err != nil || done {
			continue
		}
		key, err := c.key(p)
		if err != nil {
			return err
		}
		keys[p], building, names, sources = key, append(building, p), append(names, p.name), append(sources, p.source)
	}
	if len(building) == 0 {
		return nil
	}
	fresh, err := os.MkdirTemp(c.bin(""), unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	report := progress(func() string {
		done, _ := os.ReadDir(fresh)
		return fmt.Sprintf("building %s (%d of %d done)", strings.Join(names, ", "), len(done), len(names))
	}, time.Now())
	arguments := append([]string{"-o", fresh + string(filepath.Separator)}, c.flags()...)
	output, err := GoBuild(ctx, folder, append(arguments, sources...)...).CombinedOutput()
	report()
	if err != nil {
		return fmt.Errorf("build %s for the control plane: %w", strings.Join(names, ", "), explain(err, output))
	}
	for _, p := range building {
		if err := os.Rename(filepath.Join(fresh, p.executable()), c.bin(p.name)); err != nil {
			return err
		}
		if err := os.WriteFile(c.keyFile(p), []byte(keys[p]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// unfinished is the pattern of the folders that programs are built in.
const unfinished = ".new-*"

// removeUnfinished removes what processes have left that were killed while they built.
func (c *checkout) removeUnfinished() error {
	folders, err := filepath.Glob(c.bin(unfinished))
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

// folder returns the folder of the module that a program is built in.
func (c *checkout) folder(p program) string {
	if p.module == ownModule {
		return c.root
	}
	return filepath.Join(c.root, "hack", "k8s")
}

// flags returns the flags of `go build`, beside those of [GoBuild].
func (c *checkout) flags() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(c.version(kubernetesModule), "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	link := strings.Join([]string{"-s", "-w",
		"-X", "k8s.io/component-base/version.gitVersion=" + c.version(kubernetesModule),
		"-X", "k8s.io/component-base/version.gitMajor=" + major,
		"-X", "k8s.io/component-base/version.gitMinor=" + minor,
	}, " ")
	return []string{"-ldflags", link}
}

// explain returns an error that says what to do about the output of the go command.
func explain(err error, output []byte) error {
	has := func(text string) bool { return bytes.Contains(output, []byte(text)) }
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no go command in PATH; install Go, or name the folder of setup-envtest in KUBEBUILDER_ASSETS")
	case has("no space left on device"):
		return errors.New("the disk is full: free some space; the build needs about 5 GB for Go's caches and 500 MB for bin/k8s")
	case has("dial tcp"), has("proxyconnect"), has("module lookup disabled"), has("cannot find module"):
		return fmt.Errorf("a module could not be downloaded; check the network and `go env GOPROXY`: %s", lastLine(output))
	case len(bytes.TrimSpace(output)) == 0:
		return err
	default:
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
}

func lastLine(output []byte) []byte {
	output = bytes.TrimSpace(output)
	return output[bytes.LastIndexByte(output, '\n')+1:]
}

// lock locks a file, and waits while another process holds the lock. The kernel releases the lock of a process that
// dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	waiting := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, file.Close())
		}
		if !waiting {
			waiting = true
			defer progress(func() string { return "waiting for another process to build the control plane's programs" }, time.Now())()
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}

const reportEvery = 10 * time.Second

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "opblocks: "+format+"\n", arguments...)
}

// progress prints what is being done, at once and every ten seconds, until stop is called.
func progress(doing func() string, since time.Time) (stop func()) {
	say("%s, %.0f s", doing(), time.Since(since).Seconds())
	ticker, done := time.NewTicker(reportEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				say("%s, %.0f s", doing(), time.Since(since).Seconds())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}
