// Package fakemanager is a manager of controller-runtime for one simulated process of an operator.
//
// Its controllers, watches and work queues follow controller-runtime's rules, but nothing in it happens by itself:
// the cache shows a change when [Manager.Deliver] is called, and a reconcile begins when [Work.Begin] is called. So a
// run is deterministic, and the caller can delay, merge or repeat what a real cache would show.
//
//   - [Manager] implements manager.Manager, and drives the rest.
//   - [Cache] implements cache.Cache and client.FieldIndexer over the versions that a memoryserver keeps. Each kind
//     in it moves forward on its own, and can be frozen or begin in the past.
//   - [Controller] is one controller with its [Queue]. The workers are controller-runtime's own.
package fakemanager
