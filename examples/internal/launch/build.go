package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build compiles the operator of an example to a file. The working directory must be the root of the repository.
func Build(ctx context.Context, example, file string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", file, "./"+example)
	build.Dir = "examples"
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the %s operator: %w", example, err)
	}
	return nil
}
