package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build compiles an example's operator into a file. It is called in the repository's root folder.
func Build(ctx context.Context, example, file string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", file, "./"+example)
	build.Dir = "examples"
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the %s operator: %w", example, err)
	}
	return nil
}
