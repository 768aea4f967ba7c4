// Package reconciletest tests whether an operator survives faults. It runs a short scenario on an API server in memory,
// first without faults, and then once for each fault at each point of that run where it can happen.
//
//	reconciletest.Explore(t, reconciletest.Scenario{
//		Scheme: scheme, CRDs: []string{"../config/crd/bases"},
//		Start: func(p *reconciletest.Process) error {
//			return controller.SetupWithManager(p.Manager())
//		},
//		Actions: []reconciletest.Action{
//			reconciletest.Create(memcached),
//			reconciletest.Change(memcached, func(m *cachev1.Memcached) { m.Spec.Size = 5 }),
//			reconciletest.Delete(memcached),
//		},
//	})
//
// The operator may be any that is made with controller-runtime. It need not use opblocks.
//
// # What to use
//
//   - [Explore] tries every fault. Its comment says what goes wrong, what must hold, and how a run works.
//   - [Action.Then], [Scenario.Finally], [Has] and [Ready] check what must be true without faults.
//   - [Scenario.Unready] and [Options.SkipFindings] say what fails on purpose.
//   - [Scenario.Ignore] leaves out what differs by nature.
//   - [Scenario.Options] choose the faults: a sample, pairs, none, or one again.
//   - [External] and [Process.Effect] record what is outside of the cluster; package fakeapi has a fake API.
//   - [SimulatedController] plays a controller of the cluster, and [Jobs] the Job controller.
//   - [Run] is for ordinary tests in an [Env], and [RequestLog] counts requests.
//   - [Scenario.Webhooks] are the operator's webhooks, which the server in memory calls.
//   - [AssertRole] compares the operator's role with what it has asked for.
//   - [NewClient] is a client of the server in memory for unit tests, and [RoundTrip] checks conversions between versions.
//   - Package controlplane has a real API server, and real controllers.
//
// # Terms
//
//   - Pass: one call of the operator's reconciler.
//   - Process: one process of the operator, from its start to its death. See [Process].
//   - Action: one thing that the user does. See [Action].
//   - Fault: one thing that goes wrong at one point of a run. See [Faults].
//   - Write: a request to the API server that may change something.
//   - External: what the operator changes outside of the cluster, such as a database. See [External].
//   - Effect: a call that changes something there. Query: a call that only reads there. See [Process.Effect].
//   - Quiet: said of the operator when it has nothing left to do. See [Explore].
//   - Rest: a quiet operator rests if one more pass of every object changes nothing.
//   - Another writer: a writer that is neither the user nor the operator. It appears in faults.
//
// # What it does not test
//
// Races between goroutines of the operator: use go test -race. Admission plug-ins other than the
// operator's webhooks. RBAC roles. The real controllers of
// Kubernetes: the most common ones are simulated, see [SimulatedController]. Only requests through the clients of [Process]
// and of its Config, and calls of its Effect, Query and RoundTripper, are recorded and have faults.
package reconciletest
