// Package fakemanager implements controller-runtime's manager for one simulated process of an operator.
//
// Its controllers, watches and work queues follow controller-runtime's rules, but nothing in it happens by itself. The cache shows a change
// when [Manager.Deliver] is called, and a pass begins when [Work.Begin] is called. So a run is deterministic, and the caller can delay or
// merge the changes that the cache shows.
//
//   - [Manager] implements manager.Manager. It has the cache and the controllers.
//   - [Cache] implements cache.Cache and client.FieldIndexer. It reads the versions of objects that a memoryserver keeps. Each kind in it
//     has a revision of its own (kind.go). A kind can be frozen (freeze.go), or begin at an earlier revision.
//   - [Controller] is one controller with its work queue (queue.go).
package fakemanager
