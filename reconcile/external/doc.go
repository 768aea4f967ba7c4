// Package external has a step for a thing outside of the cluster: an account, a bucket, a DNS record, a registration in an HTTP service.
// You write the functions that depend on its API: they observe, create, update and delete the thing. The step decides when it calls each
// function. If the operator crashes at any point, no thing is left behind or created twice. The step does not change things of others.
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
// A [Record] in the status of the object says which things belong to the object. Before the step creates a thing,
// [reconcile.Checkpoint] writes the record as pending. When the API has answered, the record is confirmed. So there are three cases
// after a crash:
//
//   - The record is empty: nothing was created.
//   - It is pending: the creation may or may not have had an effect. [Resource.Identity] says how the step finds the
//     created thing.
//   - It is confirmed: the thing belongs to the object.
//
// An object may have several things, one for each key ([Resource.Keys]). The step observes all of them before it changes the first, and
// records all of them before it creates the first.
//
// A thing that exists without a record belongs to somebody else. The step does not change it, unless [Resource.Adopt] allows to take it
// over. A recorded thing is changed or deleted only if [Resource.IsOurs] returns true: somebody may have deleted our thing, and somebody
// else may have created another one with the same name.
//
// # Who gets a key
//
// With [Resource.Others], a key, or the [Resource.Group] of a key, belongs to one object: first to the object with a confirmed thing of it,
// then to the object with a pending thing, then to the older object. All other objects wait, with the error [ClaimedError]. If objects
// exchange their keys, they wait for each other in a circle. The oldest object of the circle then deletes the things that it does not want
// any more, so that the others can continue.
//
// # What an object forbids
//
// An object can forbid some calls: [Resource.ObserveOnly], [Resource.CreateOnly], [Resource.MustExist] and [Resource.Retain]. The step can
// publish values from the API in a Secret: [Resource.Publish] and [Resource.Issue].
//
// # When the API is called
//
// A pass calls the API in these cases:
//   - The generation of the object, the key, or the answer of [Resource.Version] has changed since the last pass that succeeded.
//   - [Resource.Every] or the interval of [IntervalAnnotation] has passed since that pass.
//   - Somebody has changed the Secret of [Resource.Publish].
//   - A person has requested the pass ([reconcile.RequestedAnnotation]).
//   - It is the first pass over the object in this process.
//
// Every other pass calls only Key and Version.
//
// # Metrics
//
// With a manager, the step counts its calls, the objects that wait and the servers that cannot be reached: opblocks_external_calls_total,
// opblocks_external_call_duration_seconds, opblocks_external_waiting_objects, opblocks_external_spared_servers and
// opblocks_external_calls_not_returned. The page docs/monitoring.md describes them. Labels do not have names of servers or objects.
//
// # What is sensitive
//
// The conditions, the events and the log show the message of an error that a function returns. Whoever may read the object can read it. If
// a server cannot be reached, the other objects of that server show the message too. The step hides two things: the value of a panic, and
// the query, the fragment and the user of a URL that an error of net/http quotes. Everything else is up to the functions:
//
//   - Keep passwords and tokens in a [secrets.Sensitive], which prints as (hidden), also within a struct. It does not help if you
//     make an error of a string of its bytes.
//   - Send tokens in a header, and not in the path of a URL, which errors show.
//   - Wrap errors by %w. The step does not find a URL in a text that was made by %v.
//   - Do not put the body of an answer into an error: many APIs repeat the request in it.
//   - The results of Key, Version and Create are stored in the status.
//
// docs/external.md has a picture of the states. It says what the step does in each state, and what the step cannot do.
package external
