// Package operatortest tests an operator from outside: it runs in this process, against a real control plane. The test folder of
// an operator contains what is particular to it, and uses from this package:
//
//   - [Main] to run the tests, and [ControlPlanes] for control planes that serve the operator's kinds.
//   - [User], the test's own access to a namespace. [Live], [Change], [Eventually], [User.Gone] and [StatusOf] do what the
//     operator reacts to, and wait for the result.
//   - [Start] to start the operator. [Requests] counts what it sends, and [Operator.Pass] triggers passes.
//   - [Install] for its ServiceAccount and roles as they are deployed, to test that they suffice and are minimal.
//   - [Restore] for objects that another version of the operator left, to test an upgrade.
package operatortest
