package supervisor_test

import (
	"context"
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// A server runs until the program that started it ends, however that ends.
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

// An image of CI builds the program before the tests run, which may have no go command.
func ExampleBuild() {
	if err := supervisor.Build(context.Background()); err != nil {
		fmt.Println(err)
	}
}
