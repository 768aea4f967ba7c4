package programs

import (
	"context"
	"os"
	"os/exec"
)

// GoBuild returns the command `go build` in a folder, with flags for programs that are built to be run and not debugged. All
// programs of the tests, the demo and the chaos test are built with these flags, so the packages that they share are compiled
// once, also the standard library. Without debug information the compiler needs a fifth less time.
//
// The demo and its first chapter are built by the Makefile, with the same flags.
func GoBuild(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-gcflags=all=-dwarf=false", "-trimpath", "-buildvcs=false"}, arguments...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}
