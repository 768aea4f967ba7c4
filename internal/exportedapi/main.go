// Exportedapi compares the exported API of the library with the API of the last release, which is in hack/api:
//
//	go run ./internal/exportedapi                   # reports incompatible changes that nobody has accepted
//	go run ./internal/exportedapi -accept           # writes them to hack/api/changes.txt
//	go run ./internal/exportedapi -release v0.2.0   # writes the API of a release, and removes the one before
//	go run ./internal/exportedapi -exact v0.2.0     # reports whether the API equals the API of the release
//
// `make lint` runs the first, `make api` the second, `make api RELEASE=v0.2.0` the third, and `make release-check` the last.
//
// The API of a release is text, as in the folder api of Go's own repository: a review shows each change, and a check needs neither the
// network nor the sources of the release. That is why golang.org/x/exp/apidiff is not used here: it compares two compiled packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	accept := flag.Bool("accept", false, "write the incompatible changes to hack/api/changes.txt")
	release := flag.String("release", "", "write the API as that of this `version`")
	exact := flag.String("exact", "", "report whether the API is that of this `version`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, folder("."), *accept, *release, *exact)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opblocks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root folder, accept bool, release, exact string) error {
	current, err := load(ctx, string(root))
	if err != nil {
		return err
	}
	switch {
	case release != "":
		return root.writeRelease(release, current)
	case exact != "":
		return root.checkExact(exact, current)
	}
	version, released, err := root.lastRelease()
	if err != nil {
		return err
	}
	changes := incompatible(released, current)
	if accept {
		return root.writeAccepted(changes)
	}
	accepted, err := root.accepted()
	if err != nil {
		return err
	}
	changelog, err := root.unreleased()
	if err != nil {
		return err
	}
	if faults := check(version, changes, accepted, changelog); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\nopblocks: "))
	}
	return nil
}
