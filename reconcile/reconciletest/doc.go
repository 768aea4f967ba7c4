// Package reconciletest shows whether an operator survives: it plays a scenario of a few lines on an API
// server in memory, without faults, and then once for every single fault at every single point of it.
//
//	reconciletest.Explore(t, reconciletest.Scenario{
//		Scheme: scheme, CRDs: []string{"../config/crd/bases"},
//		Start: func(p *reconciletest.Process) error {
//			return controller.SetupWithManager(p.Manager())
//		},
//		Actions: []reconciletest.Action{
//			reconciletest.Create(memcached),
//			reconciletest.Change(memcached, func(m *cachev1alpha1.Memcached) { m.Spec.Size = 5 }),
//			reconciletest.Delete(memcached),
//		},
//	})
//
// The operator may be any that is made with controller-runtime; it need not use opblocks.
//
// # What goes wrong
//
// The process dies before or after a write, or stays away until the user has done the next thing; or the user
// does that in the middle of a pass. A write is stored and its answer lost. Somebody else writes or deletes the
// object just before. The server refuses. The cache is behind, for some passes, or goes back in time at a start;
// the watch breaks. Another replica takes over in the middle of a pass. See [FaultKind].
//
// # What must hold
//
//   - Whenever all is quiet after an action, the objects and what is outside of the cluster are as they are
//     without faults. UIDs, versions, times and names that the API server gives do not count.
//   - Without faults its work ends without an error: no pass still ends in one, or in Requeue, when all is quiet
//     after the last action. A terminal error is none in this sense.
//   - The operator comes to rest; and one more pass over everything, for which there is no reason, changes nothing.
//     If it does, a watch may be missing, and the failure names the change that brought no pass. What a fault
//     does to that pass is forgiven: the operator comes to rest anew, and is checked again.
//   - No object is written more than twice as often as without the fault, and ten times more. Nothing is deleted
//     more often, no Job or Pod that the operator deleted is made again more often, and no pod template is changed
//     more often. A process that is shown the past may go back and forward again, but delete nothing for that.
//   - What another writer wrote just before is still there.
//   - No pass panics, ends with a delay beside an error (which controller-runtime ignores), sends more than 10,000
//     requests, or never ends; no goroutine is left.
//   - No value of a Secret with 8 characters or more stands in any other object, event or log line of the operator,
//     except those of well-known keys that are no secret, such as username and tls.crt.
//   - [Scenario.Finally] and [Scenario.Always].
//
// # How a run goes
//
// A run is deterministic, in a bubble of testing/synctest: time.Now is virtual, and so are the delays that a
// reconciler returns, backoff, and timers. Events are delivered one by one, and one pass runs at a time. When
// nothing is left to do, the garbage collector and [Scenario.SimulatedControllers] take a step; when they have none to take,
// time moves on to whatever is due. The operator is quiet when nothing is due within [Scenario.Horizon], or
// what is due changes nothing three times in a row. Then comes the next action.
//
// Reads by the manager's client, or [Process.Client], come from a cache that shows what has been delivered,
// those of unstructured objects from the server.
//
// # What it does not show
//
// Races of goroutines within the operator: use go test -race. What the server's admission plug-ins do. Whether
// the roles suffice. What only the real controllers of Kubernetes do, beyond Deployments: see [SimulatedController]. Only
// reads and writes through the clients that [Process] gives can be recorded and struck by faults.
package reconciletest
