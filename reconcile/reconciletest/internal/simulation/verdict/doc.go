// Package verdict judges whether the operator succeeds in a run without faults. A [Book] records how the steps of each object end. It is
// pure: it reads no cluster and no clock.
//
// What it judges is called a part: a step of package reconcile, the cleanup of a step, or, for other reconcilers, the whole pass. Parts are
// judged whenever the operator is quiet after an action. A part is wrong
//
//   - if it has never succeeded when the operator was quiet, between the creation of its object and the deletion, or
//   - if it had failed or was stalled when the operator was quiet for the last time before the deletion, or before the end of the run.
//
// If a part has succeeded before, and then waits when the operator is quiet for the last time, the report has a line about it. A part is
// not judged if it is skipped or has lost a race, or if its object is paused or filtered out.
package verdict
