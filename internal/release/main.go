// Release reports what has to be done before a tag can be pushed:
//
//	go run ./internal/release v0.1.0
//	go run ./internal/release examples/v0.1.0
//
// `make release-check` runs it. See docs/releasing.md.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] == "" {
		fmt.Fprintln(os.Stderr, "opblocks: name a tag: make release-check RELEASE=v0.1.0, or RELEASE=examples/v0.1.0")
		os.Exit(2)
	}
	if changes, err := exec.Command("git", "status", "--porcelain").Output(); err != nil || len(changes) > 0 {
		fmt.Fprintln(os.Stderr, "opblocks: a tag is of a commit, and there are changes that are not committed: see git status")
		os.Exit(1)
	}
	faults := check(os.DirFS("."), readModule, os.Args[1])
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, "opblocks:", fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// readModule returns the go.mod file of a folder as JSON.
func readModule(folder string) ([]byte, error) {
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = folder
	return command.Output()
}
