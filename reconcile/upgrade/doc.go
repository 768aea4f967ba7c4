// Package upgrade says what a new version of an operator would change in a cluster, before it runs there.
//
// [Plan] sets the operator up as its main does, with a manager that sends nothing but reads and dry runs and that never starts a
// reconciler. It looks at each object that the operator has, and prints what the first pass of this version would do to the children
// of each set (ownedresources.Ensure): what is created, applied, recreated and deleted, and what follows from it.
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
// The children of sets, with all their options, inputs, order and pruning, also of a set in a reconciler of your own. A step of your own is left out, and the plan names it,
// unless it has a method that says what it would do, as package preview has it:
//
//	func (s *step) Preview(ctx context.Context, c client.Client, obj *v1.Shop) ([]preview.Change, error)
//
// # How exact it is
//
// Each change is tried by a server-side dry run, so defaults, admission plug-ins and policies are in the plan. A child that is as desired
// costs no request. A child that differs costs at most three: a read and two dry runs. If the API server refuses the change, a few more
// look for a way around the refusal, as a pass does. The plan says what it does not show exactly.
//
// # Why it cannot write
//
// The transport of the manager refuses each request that is neither a read nor a dry run. The plan takes no leadership, adds
// no finalizer, writes no status and emits no event, and deletes nothing, not even by a dry run. It needs no other permission than the
// operator has.
package upgrade
