// Package controlplane starts a real Kubernetes control plane on this machine, for tests and for the demo.
//
// [Start] gives etcd and kube-apiserver with RBAC. [WithControllers] adds kube-controller-manager, kube-scheduler and
// kwok, which simulates nodes: Deployments roll out, pods become Ready, Jobs complete, volume claims are bound, owned
// objects are collected. No container runs. A pod with an image from the registry "registry.invalid" reports
// ImagePullBackOff for ever, one with the [HoldAnnotation] stays Pending, and a pod status that a test has written stays.
//
// The programs come from package programs, which builds them on first use. They run under package supervisor: nothing of
// a control plane, neither process nor file, outlives the program that started it, unless that asks for [ControlPlane.Detach].
//
// Tests use package controlplanetest.
package controlplane
