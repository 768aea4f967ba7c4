// Package reconciletest tests whether an operator survives faults. It runs a short scenario on an API server in memory,
// first without faults, and then once for each fault at each point of that run where it can strike.
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
// The operator may be any that is made with controller-runtime. It need not use opblocks. A pass is one call of its
// reconciler.
//
// Start with [Explore] and [Scenario]. [Run] is for ordinary tests that count requests. What the operator changes
// outside of the cluster goes through [Process.Effect].
//
// # What goes wrong
//
// The process dies before or after a write, and starts again at once or after the user's next action. That action also
// happens in the middle of a pass. A write is stored and its answer is lost. Another writer writes or deletes the object
// just before. The server refuses a request. The watch breaks, or the cache is behind for some passes. A new process sees
// the past: its cache is older than what the process before it saw. Another replica takes over in the middle of a pass.
// [FaultKind] lists all faults.
//
// # What must hold
//
//   - Whenever the operator is quiet after an action, the objects and what is outside of the cluster are the same as
//     without faults. UIDs, resource versions, times and generated names do not count.
//   - Without faults the work ends without an error: when the operator is quiet after the last action, the last pass of each
//     object has not ended in an error, by Requeue, or with a delay after a write that the API server refused. A terminal
//     error is allowed.
//   - The operator becomes quiet, and then rests: one more pass of everything, for which there is no reason, changes
//     nothing. If that changes something, a watch may be missing, and the failure names the change that triggered no pass.
//     If a fault strikes in that pass, the operator has to become quiet again, and the check is repeated.
//   - No object is written more than twice as often as without the fault, plus ten times. Nothing is deleted more
//     often, no Job or Pod that the operator deleted is created again more often, and no pod template is changed more
//     often. A process that sees the past may change a pod template back and forward again, but may not delete
//     anything for that reason.
//   - What another writer wrote just before is still there.
//   - No pass panics, returns a delay beside an error (which controller-runtime ignores), sends more than 10,000
//     requests, or never ends. No goroutine is left when a process has ended.
//   - No value of a Secret with 8 bytes or more appears in any other object, event or log line of the operator.
//     Values under well-known keys that are not secret, such as username and tls.crt, are allowed.
//   - [Scenario.Finally] and [Scenario.Always] return no error.
//
// # How a run works
//
// A run is deterministic. It happens in a bubble of testing/synctest: time.Now is virtual, and so are timers, backoff and
// the delays that a reconciler returns. Events are delivered one by one, and one pass runs at a time. When nothing is left
// to do, the garbage collector and [Scenario.SimulatedControllers] take one step. When they have nothing to do either, time
// moves on to whatever is due next. The operator is quiet when nothing is due within [Scenario.Horizon] or, if that is
// unset, when three delayed passes of each object have changed nothing. Then the next action happens.
//
// Reads by the manager's client, or by [Process.Client], come from a cache that shows what has been delivered. Reads of
// unstructured objects come from the API server.
//
// # What it does not test
//
// Races between goroutines of the operator: use go test -race. Admission plug-ins. RBAC roles. The real controllers of
// Kubernetes, except for simulated Deployments: see [SimulatedController]. Only reads and writes through the clients of
// [Process] are recorded and struck by faults.
package reconciletest
