// Package controllers simulates the controllers of built-in kinds for package simulation: Deployments, StatefulSets, DaemonSets, Jobs,
// CronJobs, Services and PersistentVolumeClaims.
//
// Each is a function that takes one step for every object of its kind: it compares what exists with what the object asks for, and writes
// what comes next. If nothing is missing, it writes nothing. It holds no state, and uses the virtual clock, so a run can be repeated.
// pod.go plays the kubelet for the pods of all of them. revision.go stores the revisions of a StatefulSet. What they write follows the
// sources of kube-controller-manager 1.36, and a test compares it with the real one.
package controllers
