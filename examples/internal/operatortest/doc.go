// Package operatortest tests an operator from outside: in this process, against a real control plane. An example's test
// folder says what is particular to its operator, and takes from here:
//
//   - [Main], which runs the tests, and [WithCRDs], which gives them a control plane that knows the operator's kinds.
//   - [User], a test's own access to a namespace; with [Live], [Change], [Eventually] and [User.Gone] it does what the
//     operator answers to, and waits for the answer.
//   - [Start], which starts the operator. Its [Requests] are counted, and [Operator.Pass] brings passes.
//   - [Install], which makes its ServiceAccount and roles as they are deployed, to see that they suffice and are minimal.
//   - [Story], a life of the operator that is told with one [Fault] after the other: it crashes, or reads what is no
//     longer so. [History] and [Process] are what the story is told with.
package operatortest
