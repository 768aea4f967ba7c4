package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles the operator of an example to a file. flags are more flags of go build. The working directory must be the root of the
// repository.
func Build(ctx context.Context, example, file string, flags ...string) error {
	workspace, err := filepath.Abs("go.work") // which has the working copy of the library
	if err != nil {
		return err
	}
	// It has no compiler flags: the packages that it shares with the programs of the control plane are compiled once. Compilers that collect
	// no garbage take a fifth less time.
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w"}, flags...), "-o", file, "./"+example)...)
	build.Dir = "examples"
	build.Env = append(os.Environ(), "GOWORK="+workspace, "GOGC=off", "GOMEMLIMIT=1GiB")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the %s operator: %w", example, err)
	}
	return nil
}

// Builds are operators that are compiled in the background, one after the other.
type Builds struct {
	folder string
	ended  map[string]chan error
}

// BuildAll begins to compile the operators of examples into a folder. The working directory must be the root of the repository.
func BuildAll(ctx context.Context, folder string, examples ...string) *Builds {
	b := &Builds{folder: folder, ended: map[string]chan error{}}
	for _, example := range examples {
		b.ended[example] = make(chan error, 1)
	}
	go func() {
		for _, example := range examples {
			b.ended[example] <- Build(ctx, example, b.file(example))
		}
	}()
	return b
}

// Wait waits until the operator of an example is compiled, and returns its path.
func (b *Builds) Wait(example string) (path string, err error) {
	err = <-b.ended[example]
	b.ended[example] <- err // for the next call
	return b.file(example), err
}

func (b *Builds) file(example string) string { return filepath.Join(b.folder, example+"-operator") }
