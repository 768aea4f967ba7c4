package programs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"syscall"
)

// explain returns an error that says what to do about a failed go command. output is the output of the command.
func explain(err error, output []byte) error {
	has := func(texts ...string) bool {
		for _, text := range texts {
			if bytes.Contains(output, []byte(text)) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no go command in PATH; install Go " + goVersion() +
			" or newer, or name the folder of setup-envtest in KUBEBUILDER_ASSETS")
	case has("no space left on device", "disk quota exceeded"):
		return errDiskFull
	case has("requires go >=", "toolchain not available", "unknown block type: tool", "invalid go version"):
		return fmt.Errorf("the go command in PATH is too old; install Go %s or newer: %s", neededGo(output), lastLine(output))
	case has("unknown revision", "no matching versions", "404 Not Found", "410 Gone"):
		return fmt.Errorf("a module is not available in this version; check the version and `go env GOPROXY`: %s", lastLine(output))
	case has("dial tcp", "proxyconnect", "module lookup disabled", "cannot find module", "reading http", `: Get "http`):
		return fmt.Errorf("a module could not be downloaded; check the network and `go env GOPROXY`: %s", lastLine(output))
	case len(bytes.TrimSpace(output)) == 0:
		return err
	default:
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
}

var goRequired = regexp.MustCompile(`requires go >= ([0-9][0-9a-z.]*)`)

// neededGo returns the version of Go that the output of the go command asks for. If it names none, neededGo returns the version that this
// module needs.
func neededGo(output []byte) string {
	if asked := goRequired.FindSubmatch(output); asked != nil {
		return string(asked[1])
	}
	return goVersion()
}

var errDiskFull = errors.New("the disk is full: free some space; the first build needs about 5 GB for Go's caches and " +
	"500 MB for the control plane's programs")

// unwritable returns an error that says what to do about a cache that cannot be written.
func unwritable(err error) error {
	var file *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return errDiskFull
	case errors.As(err, &file):
		return fmt.Errorf("the control plane's programs cannot be stored: set %s to a folder that you may write to: %w", CacheVariable, err)
	default:
		return err
	}
}

// failure returns the output of a failed go command: message if it is not empty, or else the command's standard error.
func failure(err error, message string) []byte {
	var exit *exec.ExitError
	if message == "" && errors.As(err, &exit) {
		return exit.Stderr
	}
	return []byte(message)
}

// lastLine returns the last line of the output, including the indented lines that continue it.
func lastLine(output []byte) []byte {
	output = bytes.ReplaceAll(bytes.TrimSpace(output), []byte("\n\t"), []byte(" "))
	return output[bytes.LastIndexByte(output, '\n')+1:]
}
