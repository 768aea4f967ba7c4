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
	"time"
)

// build builds what is missing. Only one process at a time does so; the others find the work done.
func (w *workshop) build(ctx context.Context, missing []program) error {
	if err := os.MkdirAll(w.bin(""), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, w.bin(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	begin := time.Now()
	for i, p := range missing {
		if done, err := w.upToDate(p); err != nil || done {
			continue
		}
		report := progress(fmt.Sprintf("building %s (%d of %d)", p.name, i+1, len(missing)), begin)
		err := w.buildOne(ctx, p)
		report()
		if err != nil {
			return fmt.Errorf("build %s for the control plane: %w", p.name, err)
		}
	}
	say("the control plane's programs are in %s, after %s", w.bin(""), time.Since(begin).Round(time.Second))
	return nil
}

func (w *workshop) buildOne(ctx context.Context, p program) error {
	key, err := w.key(p)
	if err != nil {
		return err
	}
	fresh := w.bin("." + p.name + ".new")
	defer os.Remove(fresh)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", fresh}, w.arguments(p)...)...)
	cmd.Dir = filepath.Join(w.root, "hack", "k8s")
	if p.module == ownModule {
		cmd.Dir = w.root
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return explain(err, output)
	}
	if err := os.Rename(fresh, w.bin(p.name)); err != nil {
		return err
	}
	return os.WriteFile(w.keyFile(p), []byte(key), 0o644)
}

func (w *workshop) arguments(p program) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(w.version(kubernetesModule), "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	link := strings.Join([]string{"-s", "-w",
		"-X", "k8s.io/component-base/version.gitVersion=" + w.version(kubernetesModule),
		"-X", "k8s.io/component-base/version.gitMajor=" + major,
		"-X", "k8s.io/component-base/version.gitMinor=" + minor,
	}, " ")
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", link, p.source}
}

// explain turns what the go command printed into a sentence that says what to do.
func explain(err error, output []byte) error {
	has := func(text string) bool { return bytes.Contains(output, []byte(text)) }
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no go command in PATH; install Go, or name the folder of setup-envtest in KUBEBUILDER_ASSETS")
	case has("no space left on device"):
		return errors.New("the disk is full; the build needs about 5 GB for Go's caches and 500 MB for bin/k8s")
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
