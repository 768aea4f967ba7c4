// Package external has a step for something that Kubernetes does not know: an account, a bucket, a DNS record, a registration in
// an HTTP service. You write what depends on its API: how it is observed, created, updated and deleted. The step decides when each of
// these is called, so that a crash at any point neither leaks nor doubles what is outside, and nothing of others is changed.
//
//	step := external.New(external.Resource[*User, Account]{
//		Record:  func(u *User) *external.Record { return &u.Status.Account },
//		Key:     func(u *User) string { return u.Namespace + "/" + u.Name },
//		Observe: …, Desired: …, Differs: …, Create: …, Update: …, Delete: …,
//		Every:   10 * time.Minute,
//	})
//	reconcile.Named("account", step, reconcile.Finalizer("shop.example.com/account"))
//
// # What is recorded
//
// A [Record] in the status of the object says what belongs to the object. It is written by [reconcile.Checkpoint] before anything is
// created, as pending. It is confirmed when the API has answered. So there are three cases after a crash:
//
//   - The record is empty: nothing was created.
//   - It is pending: the creation may or may not have had an effect. [Resource.Identity] says how what it created is found.
//   - It is confirmed: what is outside belongs to the object.
//
// What is found without a record belongs to somebody else. It is left alone, unless [Resource.Adopt] accepts it. What is found for a pending
// record is changed or deleted only if [Resource.IsOurs] accepts it.
//
// What an object forbids is left out: [Resource.ObserveOnly], [Resource.CreateOnly], [Resource.MustExist] and [Resource.Retain]. What the API gives is
// published in a Secret: [Resource.Publish] and [Resource.Issue].
//
// # When the API is called
//
// A pass calls the API if the generation of the object, the key, or the answer of [Resource.Version] has changed since the last pass that
// succeeded, if [Resource.Every] has passed since, if somebody has changed the Secret of [Resource.Publish], or if a person has requested the pass
// ([reconcile.RequestedAnnotation]). It calls it for each object once after the start of a process. Every other pass calls only Key and Version.
//
// docs/external.md has a picture of the states, what is done in each of them, and what the step cannot do.
package external
