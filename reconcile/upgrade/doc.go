// Package upgrade says what a new version of an operator would change in a cluster, before it runs there.
//
// [Plan] sets the operator up in the same way as its main. The manager of the plan sends only reads and dry runs, and never starts a
// reconciler. Plan looks at each object of the operator, and prints what the first reconcile by this version would do to the children of
// each set (ownedresources.Ensure): which children it would create, apply, recreate and delete, and the consequences.
//
//	plan := flag.String("plan", "", "Print what this version would change in the cluster, as text, json or markdown, and exit: 0 nothing, 3 changes, 1 an error.")
//	…
//	if *plan != "" {
//		return upgrade.Plan(ctx, access, options, controller.SetupWithManager, os.Stdout, upgrade.Options{Format: *plan})
//	}
//
// and in main, before any other error is handled:
//
//	if errors.Is(err, upgrade.ErrChanges) {
//		os.Exit(3)
//	}
//
// # What is planned
//
// The plan contains the children of sets, with all their options, inputs, order and pruning, also if a set is in a reconciler of your own.
// If a step of your own has a method that returns its changes, as in package preview, the plan contains these changes. Otherwise the plan
// only names the step:
//
//	func (s *step) Preview(ctx context.Context, c client.Client, obj *v1.Shop) ([]preview.Change, error)
//
// # How exact it is
//
// A server-side dry run tries each change, so the plan includes defaults, admission plug-ins and policies. A child that is as desired costs
// no request. A child that differs costs at most three: a read and two dry runs. If the API server refuses the change, a few more requests
// look for a way around the refusal, as in a reconcile. The plan says which parts of it are not exact.
//
// # Why it cannot write
//
// The transport of the manager refuses each request that is neither a read nor a dry run. The plan does not take leadership, adds no
// finalizer, writes no status and emits no event. It deletes nothing, not even by a dry run. It needs only the permissions that the
// operator has.
package upgrade
