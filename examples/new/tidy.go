package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const goDownload = "https://go.dev/dl/"

// tidy completes go.mod and go.sum of the new module.
func (c *command) tidy(ctx context.Context, folder string) error {
	manifest, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	wanted := goMinor(manifest)
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the command go is missing; install Go %s or newer: %s", wanted, goDownload)
	}
	if output, err := goCommand(ctx, folder, io.Discard, "list", "-m"); err != nil {
		if strings.Contains(output, "requires go") {
			return fmt.Errorf("install Go %s or newer, see %s: %s", wanted, goDownload, lastLine(output))
		}
		return fmt.Errorf("go does not accept the new module: %s", lastLine(output))
	}
	fmt.Fprintln(c.progress, "opblocks: running go mod tidy, which downloads modules that are missing")
	if output, err := goCommand(ctx, folder, c.progress, "mod", "tidy"); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was written")
		}
		return fmt.Errorf("go mod tidy failed: %s; is the network or GOPROXY missing? With -skip-tidy you run it later", lastLine(output))
	}
	return nil
}

// goCommand runs the command go in the folder of the new module, apart from any workspace around it, and returns its output.
func goCommand(ctx context.Context, folder string, progress io.Writer, arguments ...string) (output string, err error) {
	var all bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+folder)
	both := io.MultiWriter(&all, progress)
	cmd.Stdout, cmd.Stderr = both, both
	err = cmd.Run()
	return all.String(), err
}

// lastLine returns the last line of a command's output.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
