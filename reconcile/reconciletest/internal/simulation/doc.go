// Package simulation is the engine of package reconciletest. It runs an operator against an API server in memory, with a
// virtual clock, and injects planned faults at chosen points.
//
// [Explore] runs a scenario without faults, then once for each fault at each point of that run. explore.go chooses the runs, and
// exploration.go holds what they found. reference.go does the runs without faults, slots.go says how many runs happen at a time,
// and progress.go prints how far they are.
//
// One run is made of packages. Each imports only the packages below it:
//
//   - run drives a run: it lets the operator work until it is quiet, does the user's actions, and checks what they led to.
//   - operator has the operator's processes and passes, and injects the faults at their requests and in their cache.
//   - world is what is around the operator: the API server, the simulated controllers and the other writer of its objects.
//   - result holds what a run led to, and the runs without faults with which it is compared.
//   - trace prints what happened, plan says which faults happen where, outside has what the engine asks of a ready-made API, and request has
//     the operator's requests.
//   - failure has the errors of a run, bubble its goroutines, and text the words of messages.
//
// Beside them, fakemanager has the manager of a process, controllers the simulated controllers, kinds the kinds of faults and
// findings, and state compares what two runs lead to.
//
// # Terms
//
// Package reconciletest explains the terms that its users meet: pass, action, fault, process, effect, query, external,
// quiet, rest. The engine has these terms too:
//
//   - Point: a request, or the change of an object. A fault can be injected there. A point is identified by its name, and by how often points
//     of that name were reached before.
//   - Phase: the part of a run from one action to the next one.
//   - Baseline: the first run without faults.
//   - References: the runs without faults, with which the other runs are compared. The baseline is one of them.
//   - Transition: one thing that can happen next in a run, such as the delivery of an event.
//   - Known object: an object that the process has reconciled before.
//   - Rest of the cluster: the simulated controllers, the garbage collector and the other writer.
//   - Other writer: a writer of the operator's objects that is neither the user nor the operator. It appears in faults.
//   - Leader: the process that runs. If another process takes over in the middle of a pass, the old leader is the process whose pass is
//     suspended.
//   - Frozen kind: a kind whose changes the cache does not show for a while. A thaw ends that.
package simulation
