// Package simulation is the engine of package reconciletest. It runs an operator against an API server in memory, with a
// virtual clock, and injects planned faults at chosen points.
//
// [Explore] runs a [run.Scenario] without faults, then once for each fault at each point of that run. Each is a [run.Run]:
//
//   - run.go holds a run, and its bubble of testing/synctest.
//   - driver.go has the loop that lets the operator work until it is quiet, as a list of transitions.
//   - actions.go does the user's actions, and phase.go checks the state after each. rest.go checks that the operator rests, and
//     missed.go explains which events it did not get.
//   - reference.go has the runs without faults with which the others are compared; patience.go has the run in which the
//     user waits.
//   - process.go is the operator's [operator.Process], with a manager of package fakemanager. client.go and recorder.go hold its
//     client, its event recorder and its logger. pass.go follows its passes, and changes the leader.
//   - send.go sends each [request.Request], and has one handler for each kind of fault; fault.go has the kinds, and the rules by
//     which they are planned. request.go has the log of requests.
//   - changes.go observes the changes on the server, and injects the faults that delay what the operator's cache shows.
//   - operations.go counts what the operator did, otherwriter.go is the other writer of its objects, and secrets.go
//     looks for values of Secrets where they must not appear.
//   - panic.go turns panics of the test author's functions into errors. trace.go prints what happened.
//
// Package state, below it, compares what two runs lead to.
//
// # Terms
//
// Package reconciletest explains the terms that its users meet: pass, action, fault, process, effect, query, external,
// quiet, rest. The engine has these terms too:
//
//   - Point: a request, or the change of an object. It is where a fault can be injected. It is identified by its name and
//     by how often a point of that name was reached before.
//   - Phase: the part of a run from one action to the next one.
//   - Baseline: the run without faults, with which the others are compared.
//   - Transition: one thing that can happen next in a run, such as the delivery of an event.
//   - Known object: one that the process has reconciled before.
//   - Rest of the cluster: the simulated controllers, the garbage collector and the other writer.
//   - Other writer: a writer of the operator's objects that is neither the user nor the operator. It appears in faults.
//   - Leader: the process that runs. The old leader is one whose pass is suspended while another process leads.
//   - Frozen kind: one whose changes the cache does not show for a while. Its thaw ends that.
package simulation
