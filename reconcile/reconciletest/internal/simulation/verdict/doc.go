// Package verdict judges whether the operator succeeds in a run without faults. A [Book] follows how the steps of each object end, from one
// rest of the operator to the next. It is pure: it reads no cluster and no clock.
//
// What it judges is a part: a step of package reconcile, the cleanup of a step, or, for other reconcilers, the whole pass. A part is wrong
//
//   - if it has succeeded at no rest between the creation of its object and the deletion, or
//   - if it has failed or is stalled at the last rest before the deletion, or before the end of the run.
//
// A part that succeeded and then waits at the last rest is worth a line. A part that is skipped, has lost a race, or whose object is paused or
// filtered out at that rest is not judged.
package verdict
