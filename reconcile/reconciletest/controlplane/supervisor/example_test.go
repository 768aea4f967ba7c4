package supervisor_test

import (
	"context"
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// A server runs until the program that started it ends, even if that program is killed.
func Example() {
	s, err := supervisor.New(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := s.Start(supervisor.Command{Name: "server", Path: "/bin/sh", Args: []string{"-c", "echo listening; exit 3"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-server.Done()
	fmt.Println(string(server.Tail()))
	fmt.Println(s.Stop())
	// Output:
	// listening
	// <nil>
}

// A container image for CI builds the program in advance. The tests that run in it may have no go command.
func ExampleBuild() {
	if err := supervisor.Build(context.Background()); err != nil {
		fmt.Println(err)
	}
}
