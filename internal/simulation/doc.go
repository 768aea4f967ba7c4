// Package simulation is the engine of package reconciletest: it runs an operator against an API server in memory,
// with a virtual clock, and has planned faults strike at chosen points.
//
// [Explore] runs a [Scenario] without faults, then once for each fault at each point of that run. A run is a [Run]:
//
//   - driver.go has the loop that lets the operator work until it is quiet, as a list of steps.
//   - actions.go does what the user does, and checks the state after each action; rest.go checks that the operator
//     rests.
//   - process.go is the operator's [Process], with a manager of package fakemanager; client.go and recorder.go
//     are what it acts through; pass.go follows its passes.
//   - send.go sends each [Request], and has one handler for each kind of fault; fault.go has the kinds.
//   - changes.go observes the changes on the server, and delays or repeats what the operator's cache shows of them.
//   - operations.go counts what the operator did, otherwriter.go is the other writer of its objects, and secrets.go
//     looks for the values of Secrets where they do not belong.
//   - trace.go prints what happened.
//
// Package state, below it, compares what two runs lead to.
package simulation
