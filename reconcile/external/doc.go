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
//	reconcile.Named("account", step).Finalizer("shop.example.com/account")
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
// An object may have several things, one for each key ([Resource.Keys]). All are looked up before the first is changed, and all are recorded
// before the first is created.
//
// What is found without a record belongs to somebody else. It is left alone, unless [Resource.Adopt] accepts it. What is recorded is changed
// or deleted only if [Resource.IsOurs] accepts it: somebody may have deleted ours, and somebody else may have created another thing of the name.
//
// # Who gets a key
//
// With [Resource.Others], a key, or the [Resource.Group] of a key, belongs to the object that has a confirmed thing of it, then to the one that has
// a pending one, then to the older one. The others wait with a [ClaimedError]. After keys were exchanged, the oldest object of the
// circle deletes what it does not want any more, so that the others can go on.
//
// # What an object forbids
//
// Some calls are left out on request: [Resource.ObserveOnly], [Resource.CreateOnly], [Resource.MustExist] and [Resource.Retain]. What the API gives is
// published in a Secret: [Resource.Publish] and [Resource.Issue].
//
// # When the API is called
//
// A pass calls the API if the generation of the object, the key, or the answer of [Resource.Version] has changed since the last pass that
// succeeded, if [Resource.Every] or the interval of [IntervalAnnotation] has passed since, if somebody has changed the Secret of [Resource.Publish],
// or if a person has requested the pass ([reconcile.RequestedAnnotation]). It calls it for each object once after the start of a process. Every other pass calls only Key and
// Version.
//
// # Metrics
//
// With a manager, the step counts its calls, the objects that wait and the servers that cannot be reached: opblocks_external_calls_total,
// opblocks_external_call_duration_seconds, opblocks_external_waiting_objects, opblocks_external_spared_servers and
// opblocks_external_calls_not_returned. The page docs/monitoring.md describes them. No label has the name of a server or an object.
//
// # What is sensitive
//
// The message of an error that a function returns is shown in the conditions, the events and the log. Whoever may read the object reads
// it, and if a server cannot be reached, the other objects of that server show it too. The step hides two things: the value of a panic, and
// the query, the fragment and the user of a URL that an error of net/http quotes. Everything else is up to the functions:
//
//   - Hold passwords and tokens in a [secrets.Sensitive], which prints as (hidden), also within a struct. That does not help if an
//     error is made of a string of its bytes.
//   - Send tokens in a header, and not in the path of a URL, which errors show.
//   - Wrap errors by %w. In a text that was made by %v the step finds no URL.
//   - Do not put the body of an answer into an error: many APIs repeat the request in it.
//   - What Key, Version and Create return is stored in the status.
//
// docs/external.md has a picture of the states, what is done in each of them, and what the step cannot do.
package external
